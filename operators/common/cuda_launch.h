// Helpers for launching CUDA kernels. For .cu files only.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "framework/base/error.h"
#include "framework/op/kernel.h"

namespace skiff {

inline constexpr int kCudaThreads = 256;  // per block
inline constexpr int64_t kMaxCudaBlocks = 4096;

// Returns the number of blocks for `count` parts of work. Each block takes the parts that are a
// grid apart.
inline int CudaBlocks(int64_t count) { return static_cast<int>(std::min(count, kMaxCudaBlocks)); }

// The same for one part per thread.
inline int CudaBlocksOfThreads(int64_t count) {
  return CudaBlocks((count + kCudaThreads - 1) / kCudaThreads);
}

inline cudaStream_t StreamOf(const KernelContext& run) {
  return static_cast<cudaStream_t>(run.device().stream);
}

// Notes that element `position`, which has this value, is refused (KernelContext::fault).
__device__ inline void NoteFault(uint64_t* fault, int64_t position, int64_t value) {
  atomicMin(reinterpret_cast<unsigned long long*>(fault), DataFaultWord(position, value));
}

// Throws Error, starting with `what`, if the last launch failed.
inline void CheckLaunch(const char* what) {
  const cudaError_t status = cudaGetLastError();
  SKIFF_ENFORCE(status == cudaSuccess, kIo, what, ": launch failed: ", cudaGetErrorString(status));
}

}  // namespace skiff
