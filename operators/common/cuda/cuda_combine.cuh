// Values of the threads of a warp or of a block, combined by shuffles, always in the same order.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "operators/common/cuda/cuda_launch.h"

namespace skiff {

inline constexpr int kCudaWarp = 32;

struct JoinBySum {
  template <class Value>
  __device__ Value operator()(Value a, Value b) const {
    return a + b;
  }
};

// __shfl_xor_sync of a number or of a struct of words.
template <class Value>
__device__ Value ShuffleXor(const Value& value, int distance) {
  constexpr uint32_t kAll = 0xFFFFFFFF;
  if constexpr (std::is_arithmetic_v<Value>) {
    return __shfl_xor_sync(kAll, value, distance);
  } else {
    static_assert(sizeof(Value) % sizeof(uint32_t) == 0);
    constexpr int kWords = sizeof(Value) / sizeof(uint32_t);
    uint32_t words[kWords];
    memcpy(words, &value, sizeof(Value));
#pragma unroll
    for (int i = 0; i < kWords; ++i) words[i] = __shfl_xor_sync(kAll, words[i], distance);
    Value other;
    memcpy(&other, words, sizeof(Value));
    return other;
  }
}

// Returns, on all of `lanes` neighbouring lanes, a power of two, their values joined. Every lane of
// the warp makes the same call. The order of the two arguments of `join` differs from lane to lane:
// it should change no more than the rounding.
template <class Value, class Join>
__device__ Value CombineWarp(Value value, const Join& join, int lanes = kCudaWarp) {
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    value = join(value, ShuffleXor(value, distance));
  }
  return value;
}

// Returns, on all threads of a block, their values joined: the values of the warps, one after the
// other. There are whole warps, and at most kCudaThreads threads. All of them make the same call.
template <class Value, class Join>
__device__ Value CombineBlock(Value value, const Join& join, int threads = kCudaThreads) {
  __shared__ Value of_warps[kCudaThreads / kCudaWarp];
  value = CombineWarp(value, join);
  __syncthreads();  // until all have read what the last call left
  if (threadIdx.x % kCudaWarp == 0) of_warps[threadIdx.x / kCudaWarp] = value;
  __syncthreads();
  value = of_warps[0];
#pragma unroll
  for (int warp = 1; warp < kCudaThreads / kCudaWarp; ++warp) {
    if (warp < threads / kCudaWarp) value = join(value, of_warps[warp]);
  }
  return value;
}

// Sums of what threads have.
template <class Value>
struct CudaSums {
  Value before;  // over the threads before
  Value all;
};

// Returns, on each of `lanes` neighbouring lanes, a power of two, the sums over them. Every lane of
// the warp makes the same call.
template <class Value>
__device__ CudaSums<Value> ScanWarp(Value value, int lanes = kCudaWarp) {
  constexpr uint32_t kAll = 0xFFFFFFFF;
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  for (int distance = 1; distance < lanes; distance *= 2) {
    const Value other = __shfl_up_sync(kAll, value, distance);
    if (lane >= distance) value += other;
  }
  // Not a difference, which would be rounded, and NaN after an infinity.
  const Value before = __shfl_up_sync(kAll, value, 1);
  const int last = static_cast<int>(threadIdx.x) % kCudaWarp | (lanes - 1);
  return {lane == 0 ? Value{0} : before, __shfl_sync(kAll, value, last)};
}

// Returns, on all kCudaThreads threads of a block, the sums over them. All of them make the same
// call.
template <class Value>
__device__ CudaSums<Value> ScanBlock(Value value) {
  __shared__ Value of_warps[kCudaThreads / kCudaWarp];
  const int warp = static_cast<int>(threadIdx.x) / kCudaWarp;
  const CudaSums<Value> in_warp = ScanWarp(value);
  __syncthreads();  // until all have read what the last call left
  if (threadIdx.x % kCudaWarp == 0) of_warps[warp] = in_warp.all;
  __syncthreads();
  CudaSums<Value> sums{0, 0};
#pragma unroll
  for (int other = 0; other < kCudaThreads / kCudaWarp; ++other) {
    if (other == warp) sums.before = sums.all;
    sums.all += of_warps[other];
  }
  sums.before += in_warp.before;
  return sums;
}

}  // namespace skiff
