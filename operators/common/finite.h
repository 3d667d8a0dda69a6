// Bounds that keep infinities out of products: inf · 0 and inf / inf are NaN where the limit of a
// formula is a number. NaN stays NaN. On the CPU and on devices; formula-inl.h has the same for
// vectors.
#pragma once

#include <limits>

namespace skiff {

// Return x, but no less (no more) than the bound.
template <typename T>
constexpr T AtLeast(T bound, T x) {
  return x < bound ? bound : x;
}
template <typename T>
constexpr T AtMost(T bound, T x) {
  return x > bound ? bound : x;
}

// Returns x, or the lowest finite number for minus infinity.
template <typename T>
constexpr T AboveMinusInfinity(T x) {
  return AtLeast(std::numeric_limits<T>::lowest(), x);
}

// Returns x, or the nearest finite number for an infinity.
template <typename T>
constexpr T NearestFinite(T x) {
  return AtMost(std::numeric_limits<T>::max(), AboveMinusInfinity(x));
}

}  // namespace skiff
