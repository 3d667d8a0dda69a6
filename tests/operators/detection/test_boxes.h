// Boxes for the cases of detection.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tests/harness/op_case.h"

namespace skiff::harness {

// Returns boxes whose corners are random numbers in [0, size), xmin < xmax and ymin < ymax.
inline Array RandomBoxes(const Shape& shape, uint64_t seed, double size = 1) {
  Array boxes = Uniform(shape, seed, 0, size);
  for (size_t i = 0; i + 3 < boxes.values.size(); i += 4) {
    for (const size_t axis : {i, i + 1}) {
      if (boxes.values[axis] > boxes.values[axis + 2])
        std::swap(boxes.values[axis], boxes.values[axis + 2]);
    }
  }
  return boxes;
}

inline std::vector<std::array<double, 4>> BoxesOf(const Array& array) {
  std::vector<std::array<double, 4>> boxes(array.values.size() / 4);
  for (size_t i = 0; i < array.values.size(); ++i) boxes[i / 4][i % 4] = array.values[i];
  return boxes;
}

}  // namespace skiff::harness
