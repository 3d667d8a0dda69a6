// A factor as tensor cores see it, for the stand-ins of NVIDIA's libraries.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "operators/common/half.h"

namespace skiff::cuda_emulation {

// Returns the number; if it is float32 and `rounds_to_tf32`, with ten bits after the point.
template <typename T>
__device__ double FactorOf(T value, bool rounds_to_tf32) {
  const auto wide = static_cast<WideType<T>>(value);
  if constexpr (std::is_same_v<T, float>) {
    if (rounds_to_tf32) {
      const uint32_t bits = (std::bit_cast<uint32_t>(wide) + 0x1000u) & ~0x1fffu;
      return static_cast<double>(std::bit_cast<float>(bits));
    }
  }
  return static_cast<double>(wide);
}

}  // namespace skiff::cuda_emulation
