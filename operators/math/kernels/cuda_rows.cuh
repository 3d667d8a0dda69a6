// Sums along the rows of matrices, in an order that depends on the sizes alone.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "operators/common/cuda_launch.h"

namespace skiff {

inline constexpr int kWarpThreads = 32;
// Rows up to this length are summed by a warp each, longer ones by a block.
inline constexpr int64_t kMaxWarpRow = 1024;

// The row of element i of a matrix. Divisions of 64 bits are slow.
__device__ inline int64_t RowOf(int64_t i, int64_t columns) {
  if (i <= 0xFFFFFFFF && columns <= 0xFFFFFFFF) {
    return static_cast<uint32_t>(i) / static_cast<uint32_t>(columns);
  }
  return i / columns;
}

// Returns the sum of the values of kThreads neighbouring threads, a warp or the block. Of all of
// them: the first one gets it, the others may.
template <int kThreads, typename T>
__device__ T SumOfThreads(T value) {
#pragma unroll
  for (int lanes = kWarpThreads / 2; lanes > 0; lanes /= 2) {
    value += __shfl_xor_sync(0xFFFFFFFF, value, lanes);
  }
  if constexpr (kThreads > kWarpThreads) {
    __shared__ T of_warps[kThreads / kWarpThreads];
    // What an earlier sum has left is read.
    __syncthreads();
    if (threadIdx.x % kWarpThreads == 0) of_warps[threadIdx.x / kWarpThreads] = value;
    __syncthreads();
    value = of_warps[0];
    for (int warp = 1; warp < kThreads / kWarpThreads; ++warp) value += of_warps[warp];
  }
  return value;
}

// Calls visit(row, thread) for the rows of kThreads neighbouring threads, with the number of the
// thread among them.
template <int kThreads, class Visit>
__device__ void ForEachRow(int64_t rows, const Visit& visit) {
  constexpr int kAtOnce = kCudaThreads / kThreads;
  const int thread = threadIdx.x % kThreads;
  for (int64_t row = int64_t{blockIdx.x} * kAtOnce + threadIdx.x / kThreads; row < rows;
       row += int64_t{gridDim.x} * kAtOnce) {
    visit(row, thread);
  }
}

// The blocks for ForEachRow.
template <int kThreads>
int BlocksOfRows(int64_t rows) {
  return CudaBlocksOfThreads(rows * kThreads);
}

}  // namespace skiff
