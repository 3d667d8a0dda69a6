// The two-byte floating-point types. They are for storage: they convert from and to float, and
// nothing else. Conversions of single numbers are constexpr, so CUDA kernels can call them, too.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "framework/base/dtype.h"

namespace skiff {

// IEEE 754 binary16: 1 sign bit, 5 exponent bits, 10 fraction bits.
struct Float16 {
  uint16_t bits = 0;

  constexpr Float16() = default;
  // Rounds to nearest, ties to even; becomes infinity from 65,520 on.
  constexpr explicit Float16(float value) {
    const auto all = std::bit_cast<uint32_t>(value);
    const uint32_t magnitude = all & 0x7fffffffu;
    bits = static_cast<uint16_t>((all >> 16 & 0x8000u) | BitsOfMagnitude(magnitude));
  }

  constexpr explicit operator float() const {
    const uint32_t sign = (bits & 0x8000u) << 16;
    const uint32_t exponent = bits >> 10 & 0x1fu;
    const uint32_t fraction = bits & 0x3ffu;
    if (exponent == 0) {
      const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
      return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
    }
    const uint32_t wide_exponent = exponent == 0x1fu ? 0xffu : exponent + (127 - 15);
    return std::bit_cast<float>(sign | wide_exponent << 23 | fraction << 13);
  }

 private:
  static constexpr uint32_t BitsOfMagnitude(uint32_t magnitude) {
    constexpr uint32_t kInfinity = 0x7f800000u;
    constexpr uint32_t kTooLarge = 0x47800000u;     // 2^16
    constexpr uint32_t kLeastNormal = 0x38800000u;  // 2^-14
    if (magnitude > kInfinity) return 0x7e00u | (magnitude >> 13 & 0x1ffu);
    if (magnitude >= kTooLarge) return 0x7c00u;
    if (magnitude < kLeastNormal) {
      // The last bit of 0.5f is the unit of the subnormal numbers: the addition rounds.
      return std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) -
             std::bit_cast<uint32_t>(0.5f);
    }
    const uint32_t odd = magnitude >> 13 & 1u;
    return (magnitude - (uint32_t{127 - 15} << 23) + 0xfffu + odd) >> 13;
  }
};

// The upper half of a float: 8 exponent bits, 7 fraction bits.
struct BFloat16 {
  uint16_t bits = 0;

  constexpr BFloat16() = default;
  // Rounds to nearest, ties to even.
  constexpr explicit BFloat16(float value) {
    const auto all = std::bit_cast<uint32_t>(value);
    const bool is_nan = (all & 0x7fffffffu) > 0x7f800000u;
    const uint32_t odd = all >> 16 & 1u;
    bits = static_cast<uint16_t>((is_nan ? all | 0x400000u : all + 0x7fffu + odd) >> 16);
  }

  constexpr explicit operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
};

template <typename T>
inline constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

// The type in which numbers of type T are computed: float for half.
template <typename T>
using WideType = std::conditional_t<kIsHalf<T>, float, T>;

template <>
struct DTypeOfType<Float16> {
  static constexpr DType value = DType::kFloat16;
};
template <>
struct DTypeOfType<BFloat16> {
  static constexpr DType value = DType::kBFloat16;
};

}  // namespace skiff
