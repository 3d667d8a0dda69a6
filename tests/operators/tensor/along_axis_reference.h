// The elements that an index names along an axis, for take_along_axis and put_along_axis.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/operators/tensor/coordinates.h"

namespace skiff::harness {

// The places in a tensor of the elements that the numbers of `index` name along `axis`.
inline std::vector<size_t> NamedPlaces(const Shape& tensor, const Array& index, int axis) {
  std::vector<size_t> places;
  for (size_t i = 0; i < index.values.size(); ++i) {
    std::vector<int64_t> at = CoordinatesOf(index.shape, static_cast<int64_t>(i));
    if (!at.empty()) at[static_cast<size_t>(axis)] = static_cast<int64_t>(index.values[i]);
    places.push_back(IndexOf(tensor, at));
  }
  return places;
}

}  // namespace skiff::harness
