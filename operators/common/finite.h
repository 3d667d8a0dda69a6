// Keeps infinities out of products: inf · 0 and inf / inf are NaN where the limit of a formula is a
// number. On CPU and CUDA; finite-inl.h has the same for vectors.
#pragma once

#include <limits>

namespace skiff {

// Returns x, or the lowest finite number for minus infinity. NaN stays NaN.
template <typename T>
constexpr T AboveMinusInfinity(T x) {
  constexpr T kLowest = std::numeric_limits<T>::lowest();
  return x < kLowest ? kLowest : x;
}

// Returns x, or the nearest finite number for an infinity. NaN stays NaN.
template <typename T>
constexpr T NearestFinite(T x) {
  constexpr T kHighest = std::numeric_limits<T>::max();
  const T above = AboveMinusInfinity(x);
  return above > kHighest ? kHighest : above;
}

}  // namespace skiff
