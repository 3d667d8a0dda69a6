// CUDA kernels of integer divisions: a division by zero is noted, and its Error thrown later.
#pragma once

#include "operators/common/cuda_integer.cuh"
#include "operators/common/cuda_launch.h"
#include "operators/elementwise/kernels/cuda_binary.cuh"
#include "operators/elementwise/kernels/integer_division.h"

namespace skiff {

// WrappingDivide of integer_division.h.
template <typename T>
__device__ T DeviceDivide(T x, T y) {
  return y == T{-1} ? DeviceSub(T{0}, x) : x / y;
}

namespace cuda_binary {

template <class Functor, typename T>
__global__ void __launch_bounds__(kCudaThreads)
    Divide(const T* x, const T* y, T* out, CudaLoops<2> loops, uint64_t* fault) {
  ForEachVector<1>(loops.count(), false, [&](int64_t i, int, bool) {
    int64_t offsets[2];
    loops.SetOffsets(i, offsets);
    const T divisor = y[offsets[1]];
    if (divisor == T{0}) {
      NoteFault(fault, offsets[1], 0);
      out[i] = 0;
    } else {
      out[i] = Functor()(x[offsets[0]], divisor);
    }
  });
}

template <class Functor, typename T>
const char* LaunchDivision(const CudaBinaryLaunch& launch) {
  const auto stream = static_cast<cudaStream_t>(launch.grid.stream);
  Divide<Functor, T><<<launch.grid.blocks, kCudaThreads, 0, stream>>>(
      static_cast<const T*>(launch.x), static_cast<const T*>(launch.y), static_cast<T*>(launch.out),
      launch.loops, launch.fault);
  return LaunchFailure();
}

}  // namespace cuda_binary

// Adds the kernels of an op for int32 and int64. The functor meets no divisor of 0.
template <class Functor>
void AddCudaIntegerDivision(OpRegistry& registry, const char* type) {
  using cuda_binary::LaunchDivision;
  AddCudaBinaryKernel(registry, type, kDTypeOf<int32_t>, LaunchDivision<Functor, int32_t>,
                      ThrowZeroDivisor);
  AddCudaBinaryKernel(registry, type, kDTypeOf<int64_t>, LaunchDivision<Functor, int64_t>,
                      ThrowZeroDivisor);
}

}  // namespace skiff
