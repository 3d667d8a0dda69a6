// running_statistic.h for CUDA kernels.
#pragma once

#include <cmath>

namespace skiff {

// Returns momentum · old + (1 - momentum) · moment. The product and the sum are rounded where the
// source says so, not where a compiler may: so all ops get the same bits.
template <typename T>
__device__ T UpdatedOnDevice(double momentum, T old, double moment) {
  return static_cast<T>(std::fma(momentum, static_cast<double>(old), (1 - momentum) * moment));
}

}  // namespace skiff
