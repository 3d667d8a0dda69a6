// Sums of losses that a formula computes element by element.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "operators/common/element_formula.h"

namespace skiff {

// The number of losses that are computed at once before they are summed: few enough for the stack.
inline constexpr int64_t kSummedLosses = 1024;

// Returns the sum of losses, in an order that depends on the count alone. The sum is of float64
// numbers: small losses aren't lost beside large ones, and large losses don't overflow before a
// mean is taken.
template <typename T>
double SumOfLosses(const T* losses, int64_t count) {
  // Independent sums, so that an addition needn't wait for the previous addition.
  constexpr int64_t kSums = 8;
  double sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (int64_t k = 0; k < kSums; ++k) sums[k] += static_cast<double>(losses[i + k]);
  }
  double sum = 0;
  for (int64_t k = 0; i >= kSums && k < kSums; ++k) sum += sums[k];
  for (; i < count; ++i) sum += static_cast<double>(losses[i]);
  return sum;
}

// Returns the sum of a loop's values for an output at positions [0, count). The output must be
// nullptr in `arrays`.
template <typename T>
double SumOfOutput(const ElementLoop<T>& loop, const ElementArrays<T>& arrays, size_t output,
                   int64_t count) {
  T losses[kSummedLosses];
  double sum = 0;
  for (int64_t first = 0; first < count; first += kSummedLosses) {
    ElementArrays<T> part = arrays.From(first);
    part.outputs[output] = losses;
    const int64_t size = std::min(kSummedLosses, count - first);
    loop(part, size);
    sum += SumOfLosses(losses, size);
  }
  return sum;
}

}  // namespace skiff
