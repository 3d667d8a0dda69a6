// operators/common/integer.h on the device: sums and products of integers wrap around, and floats
// out of an integer's range become the nearest one.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "operators/common/integer.h"

namespace skiff {

template <typename T>
__device__ T DeviceAdd(T x, T y) {
  return static_cast<T>(static_cast<Arithmetic<T>>(x) + static_cast<Arithmetic<T>>(y));
}

template <typename T>
__device__ T DeviceSub(T x, T y) {
  return static_cast<T>(static_cast<Arithmetic<T>>(x) - static_cast<Arithmetic<T>>(y));
}

template <typename T>
__device__ T DeviceMul(T x, T y) {
  return static_cast<T>(static_cast<Arithmetic<T>>(x) * static_cast<Arithmetic<T>>(y));
}

// FromFloat of integer.h.
template <typename T, typename F>
__device__ T DeviceFromFloat(F value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value != F{0};
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value);
  } else {
    constexpr F kLowest = static_cast<F>(std::numeric_limits<T>::lowest());
    constexpr F kBeyond = static_cast<F>(std::numeric_limits<T>::max() / 2 + 1) * F{2};
    if (value >= kBeyond) return std::numeric_limits<T>::max();
    if (value <= kLowest) return std::numeric_limits<T>::lowest();
    return value != value ? T{0} : static_cast<T>(value);
  }
}

}  // namespace skiff
