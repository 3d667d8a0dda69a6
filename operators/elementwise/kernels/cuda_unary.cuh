// CUDA kernels of unary ops: those of a formula (unary_facts.h), and of a functor that a .cu file
// makes from a launch. A functor has Value(x) and Gradient(saved, dout), where `saved` is X or Out.
// Of half, it gets floats.
#pragma once

#include "operators/common/cuda/cuda_vector_loop.cuh"
#include "operators/common/cuda/cuda_vectors.cuh"
#include "operators/common/formula.h"
#include "operators/elementwise/kernels/cuda_unary.h"

namespace skiff {

namespace cuda_unary {

template <class Functor, typename T>
__global__ void __launch_bounds__(kCudaThreads)
    Apply(Functor f, const T* x, T* out, int64_t count, bool is_aligned) {
  constexpr int kSize = kVectorSize<T>;
  ForEachVector<kSize>(count, is_aligned, [&](int64_t i, int length, bool is_whole) {
    auto vector = LoadWide<kSize>(x + i, length, is_whole);
#pragma unroll
    for (int j = 0; j < kSize; ++j) vector.values[j] = f.Value(vector.values[j]);
    StoreRounded(vector, length, is_whole, out + i);
  });
}

template <class Functor, typename T>
__global__ void __launch_bounds__(kCudaThreads)
    ApplyGradient(Functor f, const T* saved, const T* dout, T* dx, int64_t count, bool is_aligned) {
  constexpr int kSize = kVectorSize<T>;
  ForEachVector<kSize>(count, is_aligned, [&](int64_t i, int length, bool is_whole) {
    const auto values = LoadWide<kSize>(saved + i, length, is_whole);
    auto vector = LoadWide<kSize>(dout + i, length, is_whole);
#pragma unroll
    for (int j = 0; j < kSize; ++j) {
      vector.values[j] = f.Gradient(values.values[j], vector.values[j]);
    }
    StoreRounded(vector, length, is_whole, dx + i);
  });
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

}  // namespace cuda_unary

// Adds the kernels of T of a formula's op.
template <class Formula, typename T>
void AddCudaUnaryForward(OpRegistry& registry) {
  AddCudaUnaryKernel(
      registry, {.op = Formula::kFacts}, kDTypeOf<T>, [](const CudaUnaryLaunch& launch) {
        return cuda_unary::LaunchApply<T>(launch, MakeFormula<Formula>(launch.numbers));
      });
}

// Adds the kernels of the gradient op.
template <class Formula, typename T>
void AddCudaUnaryGradient(OpRegistry& registry) {
  AddCudaUnaryGradKernel(
      registry, {.op = Formula::kFacts}, kDTypeOf<T>, [](const CudaUnaryLaunch& launch) {
        return cuda_unary::LaunchApplyGradient<T>(launch, MakeFormula<Formula>(launch.numbers));
      });
}

// Adds all of them, for float32, float64 and, unless the op needs float32, half.
template <class Formula>
void AddCudaUnary(OpRegistry& registry) {
  const auto add = [&registry]<typename... Ts>() {
    (AddCudaUnaryForward<Formula, Ts>(registry), ...);
    (AddCudaUnaryGradient<Formula, Ts>(registry), ...);
  };
  add.template operator()<float, double>();
  if constexpr (!Formula::kFacts.needs_float32) add.template operator()<BFloat16, Float16>();
}

}  // namespace skiff
