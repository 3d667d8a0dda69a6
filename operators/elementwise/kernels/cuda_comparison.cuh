// CUDA kernels of comparisons and logical ops, whose result is bool.
#pragma once

#include <cstdint>

#include "operators/elementwise/kernels/cuda_binary.cuh"

namespace skiff {

// Adds the kernels of an op for all dtypes of its CPU kernels. A bool is a byte that is 0 or 1.
template <class Functor>
void AddCudaComparison(OpRegistry& registry, const char* type) {
  using cuda_binary::LaunchForward;
  const auto add = [&](DType dtype, CudaBinaryLauncher launcher) {
    AddCudaBinaryKernel(registry, type, dtype, launcher);
  };
  add(DType::kBool, LaunchForward<Functor, false, uint8_t, bool>);
  add(DType::kUint8, LaunchForward<Functor, false, uint8_t, bool>);
  add(DType::kInt32, LaunchForward<Functor, false, int32_t, bool>);
  add(DType::kInt64, LaunchForward<Functor, false, int64_t, bool>);
  add(DType::kFloat32, LaunchForward<Functor, false, float, bool>);
  add(DType::kFloat64, LaunchForward<Functor, false, double, bool>);
}

}  // namespace skiff
