// CUDA kernels of unary ops. The .cu file of an op has two functors for numbers of any type, f(x)
// and, for the gradient, f(saved, dout), where `saved` is X or Out, and calls AddCudaUnary. A
// functor that depends on attributes has a constructor from them, as in leaky_relu.cu.
#pragma once

#include <type_traits>

#include "operators/common/cuda_vector_loop.cuh"
#include "operators/common/cuda_vectors.cuh"
#include "operators/elementwise/kernels/cuda_unary.h"

namespace skiff {

// The gradient of a step function.
struct CudaZeroGradient {
  template <typename T>
  __device__ T operator()(T, T) const {
    return T{0};
  }
};

namespace cuda_unary {

template <class Functor, typename T>
__global__ void __launch_bounds__(kCudaThreads)
    Apply(Functor f, const T* x, T* out, int64_t count, bool is_aligned) {
  constexpr int kSize = kVectorSize<T>;
  ForEachVector<kSize>(count, is_aligned, [&](int64_t i, int length, bool is_whole) {
    CudaVector<T, kSize> vector = LoadVector<kSize>(x + i, length, is_whole);
#pragma unroll
    for (int j = 0; j < kSize; ++j) vector.values[j] = f(vector.values[j]);
    StoreVector(vector, length, is_whole, out + i);
  });
}

template <class Functor, typename T>
__global__ void __launch_bounds__(kCudaThreads)
    ApplyGradient(Functor f, const T* saved, const T* dout, T* dx, int64_t count, bool is_aligned) {
  constexpr int kSize = kVectorSize<T>;
  ForEachVector<kSize>(count, is_aligned, [&](int64_t i, int length, bool is_whole) {
    const CudaVector<T, kSize> values = LoadVector<kSize>(saved + i, length, is_whole);
    CudaVector<T, kSize> vector = LoadVector<kSize>(dout + i, length, is_whole);
#pragma unroll
    for (int j = 0; j < kSize; ++j) vector.values[j] = f(values.values[j], vector.values[j]);
    StoreVector(vector, length, is_whole, dx + i);
  });
}

template <class Functor>
Functor MakeFunctor([[maybe_unused]] const UnaryNumbers& numbers) {
  if constexpr (std::is_constructible_v<Functor, const UnaryNumbers&>) {
    return Functor(numbers);
  } else {
    return Functor();
  }
}

// Issue a forward or a gradient kernel of a functor.
template <typename T, class Functor>
const char* LaunchApply(const CudaUnaryLaunch& launch, const Functor& f) {
  Apply<Functor, T>
      <<<launch.grid.blocks, kCudaThreads, 0, static_cast<cudaStream_t>(launch.grid.stream)>>>(
          f, static_cast<const T*>(launch.from), static_cast<T*>(launch.to), launch.count,
          IsAlignedTo(launch.from, 16) && IsAlignedTo(launch.to, 16));
  return LaunchFailure();
}

template <typename T, class Functor>
const char* LaunchApplyGradient(const CudaUnaryLaunch& launch, const Functor& f) {
  const bool is_aligned =
      IsAlignedTo(launch.saved, 16) && IsAlignedTo(launch.from, 16) && IsAlignedTo(launch.to, 16);
  ApplyGradient<Functor, T>
      <<<launch.grid.blocks, kCudaThreads, 0, static_cast<cudaStream_t>(launch.grid.stream)>>>(
          f, static_cast<const T*>(launch.saved), static_cast<const T*>(launch.from),
          static_cast<T*>(launch.to), launch.count, is_aligned);
  return LaunchFailure();
}

template <class Functor, typename T>
const char* LaunchForward(const CudaUnaryLaunch& launch) {
  return LaunchApply<T>(launch, MakeFunctor<Functor>(launch.numbers));
}

template <class Functor, typename T>
const char* LaunchGradient(const CudaUnaryLaunch& launch) {
  return LaunchApplyGradient<T>(launch, MakeFunctor<Functor>(launch.numbers));
}

}  // namespace cuda_unary

template <class Functor, typename... Ts>
void AddCudaUnaryForward(OpRegistry& registry, const CudaUnaryFacts& facts) {
  (AddCudaUnaryKernel(registry, facts, kDTypeOf<Ts>, cuda_unary::LaunchForward<Functor, Ts>), ...);
}

// Adds the kernels of an op and its gradient op, of float32 and float64.
template <class Functor, class Gradient>
void AddCudaUnary(OpRegistry& registry, const CudaUnaryFacts& facts) {
  AddCudaUnaryForward<Functor, float, double>(registry, facts);
  AddCudaUnaryGradKernel(registry, facts, kDTypeOf<float>,
                         cuda_unary::LaunchGradient<Gradient, float>);
  AddCudaUnaryGradKernel(registry, facts, kDTypeOf<double>,
                         cuda_unary::LaunchGradient<Gradient, double>);
}

}  // namespace skiff
