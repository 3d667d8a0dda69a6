// Batches of volumes, for the float64 references. Images are volumes of depth 1.
#pragma once

#include <array>
#include <cstdint>

#include "tests/harness/op_case.h"

namespace skiff::harness {

// Depth, height, width.
using Triple = std::array<int64_t, 3>;

struct VolumeSize {
  int64_t batch = 1;
  int64_t channels = 1;
  Triple size{1, 1, 1};

  // Of rank 5, or of rank 4 for images.
  Shape AsShape(bool channels_last, bool is_image = false) const {
    Shape shape = {batch};
    if (!channels_last) shape.Append(channels);
    for (size_t axis = is_image ? 1 : 0; axis < 3; ++axis) shape.Append(size[axis]);
    if (channels_last) shape.Append(channels);
    return shape;
  }
  int64_t count() const { return batch * channels * size[0] * size[1] * size[2]; }
  bool contains(const Triple& at) const {
    for (size_t axis = 0; axis < 3; ++axis) {
      if (at[axis] < 0 || at[axis] >= size[axis]) return false;
    }
    return true;
  }
  size_t Index(bool channels_last, int64_t n, int64_t c, const Triple& at) const {
    const int64_t point = (at[0] * size[1] + at[1]) * size[2] + at[2];
    const int64_t points = size[0] * size[1] * size[2];
    return static_cast<size_t>(channels_last ? (n * points + point) * channels + c
                                             : (n * channels + c) * points + point);
  }
};

// Calls visit(z, y, x) for every point of an extent, row by row.
template <typename Visit>
void ForEachPoint(const Triple& size, const Visit& visit) {
  for (int64_t z = 0; z < size[0]; ++z) {
    for (int64_t y = 0; y < size[1]; ++y) {
      for (int64_t x = 0; x < size[2]; ++x) visit(Triple{z, y, x});
    }
  }
}

}  // namespace skiff::harness
