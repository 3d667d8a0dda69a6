// CUDA kernels of predicates: ops with a single operand and a bool for each element.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "operators/elementwise/kernels/cuda_unary.cuh"
#include "operators/elementwise/kernels/predicate_facts.h"

namespace skiff {

namespace cuda_predicate {

template <class Formula, typename T>
__global__ void __launch_bounds__(kCudaThreads) Apply(const T* x, bool* out, int64_t count) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    out[i] = Formula().Value(Widened(x[i]));
  }
}

template <class Formula, typename T>
const char* Launch(const CudaUnaryLaunch& launch) {
  Apply<Formula, T>
      <<<launch.grid.blocks, kCudaThreads, 0, static_cast<cudaStream_t>(launch.grid.stream)>>>(
          static_cast<const T*>(launch.from), static_cast<bool*>(launch.to), launch.count);
  return LaunchFailure();
}

}  // namespace cuda_predicate

// Adds the kernels of a predicate's op for all dtypes of its CPU kernels. A bool is a byte that is
// 0 or 1. Of half, the formula gets floats.
template <class Formula>
void AddCudaPredicate(OpRegistry& registry) {
  const auto add = [&]<typename T>(DType dtype, T) {
    AddCudaUnaryKernel(registry, {.op = {.type = Formula::kFacts.type}}, dtype,
                       cuda_predicate::Launch<Formula, T>);
  };
  add(DType::kBool, uint8_t{});
  add(DType::kUint8, uint8_t{});
  add(DType::kInt32, int32_t{});
  add(DType::kInt64, int64_t{});
  add(DType::kFloat32, float{});
  add(DType::kFloat64, double{});
  add(DType::kBFloat16, BFloat16{});
  add(DType::kFloat16, Float16{});
}

}  // namespace skiff
