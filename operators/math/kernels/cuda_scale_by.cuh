// Out = X * a factor that is computed on the device.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "framework/op/kernel.h"
#include "operators/common/cuda/cuda_grid.h"
#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/cuda/cuda_vector_loop.cuh"
#include "operators/common/cuda/cuda_vectors.cuh"

namespace skiff {
namespace {

// factor_of(), which each thread calls, reads device memory that isn't `out`. `out` may be `x`.
template <class FactorOf, typename T>
__global__ void __launch_bounds__(kCudaThreads)
    ScaleBy(FactorOf factor_of, const T* x, T* out, int64_t count, bool is_aligned) {
  constexpr int kSize = kVectorSize<T>;
  const T factor = factor_of();
  ForEachVector<kSize>(count, is_aligned, [&](int64_t i, int length, bool is_whole) {
    CudaVector<T, kSize> vector = LoadVector<kSize>(x + i, length, is_whole);
#pragma unroll
    for (int j = 0; j < kSize; ++j) vector.values[j] *= factor;
    StoreVector(vector, length, is_whole, out + i);
  });
}

// `what` names the work in an Error.
template <typename T, class FactorOf>
void ScaleOnDevice(const KernelContext& run, const char* what, const FactorOf& factor_of,
                   const Tensor& x, Tensor* out) {
  const int64_t count = x.element_count();
  if (count == 0) return;
  const T* from = x.data<T>();
  T* to = out->data<T>();
  const CudaGrid grid = GridOfVectors(run, count, sizeof(T));
  ScaleBy<FactorOf, T><<<grid.blocks, kCudaThreads, 0, StreamOf(run)>>>(
      factor_of, from, to, count, IsAlignedTo(from, 16) && IsAlignedTo(to, 16));
  CheckLaunch(what);
}

}  // namespace
}  // namespace skiff
