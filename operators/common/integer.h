// Arithmetic without undefined behaviour: sums, products and quotients of integers wrap around;
// with floats, arithmetic is ordinary. On the CPU and, since the functions are constexpr, on
// devices.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

namespace skiff {

// The type in which arithmetic on T runs: for integers an unsigned type, wide enough not to be
// promoted to a signed one.
template <typename T, bool kInteger = std::is_integral_v<T>>
struct ArithmeticType {
  using Type = T;
};
template <typename T>
struct ArithmeticType<T, true> {
  using Type = std::conditional_t<sizeof(T) <= sizeof(uint32_t), uint32_t, uint64_t>;
};
template <typename T>
using Arithmetic = typename ArithmeticType<T>::Type;

template <typename T>
constexpr T WrappingAdd(T x, T y) {
  return static_cast<T>(static_cast<Arithmetic<T>>(x) + static_cast<Arithmetic<T>>(y));
}

template <typename T>
constexpr T WrappingSub(T x, T y) {
  return static_cast<T>(static_cast<Arithmetic<T>>(x) - static_cast<Arithmetic<T>>(y));
}

template <typename T>
constexpr T WrappingMul(T x, T y) {
  return static_cast<T>(static_cast<Arithmetic<T>>(x) * static_cast<Arithmetic<T>>(y));
}

// Returns x / y, rounded towards zero for integers, for which y must not be 0. The lowest integer
// divided by -1 wraps around to itself.
template <typename T>
constexpr T WrappingDivide(T x, T y) {
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    if (y == static_cast<T>(-1)) return WrappingSub(T{0}, x);
  }
  return static_cast<T>(x / y);
}

// Converts a floating-point number to T. For an integer T, rounds towards zero; a value out of
// range becomes the nearest number of T, and NaN becomes 0. For bool, returns whether the value
// isn't 0.
template <typename T, typename F>
constexpr T FromFloat(F value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value != F{0};
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value);
  } else {
    // The largest T may round up to the first number beyond it.
    constexpr F kLowest = static_cast<F>(std::numeric_limits<T>::lowest());
    constexpr F kBeyond = static_cast<F>(std::numeric_limits<T>::max() / 2 + 1) * F{2};
    if (value >= kBeyond) return std::numeric_limits<T>::max();
    if (value <= kLowest) return std::numeric_limits<T>::lowest();
    return value != value ? T{0} : static_cast<T>(value);
  }
}

}  // namespace skiff
