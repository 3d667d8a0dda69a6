// The order of the elements of a line, for references of ops that sort.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "tests/operators/math/axis_lines.h"

namespace skiff::harness {

// Returns the places of the values in ascending or descending order; equal values stay in their
// order, and NaN is the largest.
inline std::vector<size_t> SortedPlaces(const std::vector<double>& values, bool descending) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto rank = [&](size_t i) { return std::isnan(values[i]) ? INFINITY : values[i]; };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return descending ? rank(a) > rank(b) : rank(a) < rank(b);
  });
  return order;
}

}  // namespace skiff::harness
