// Helpers for launching CUDA kernels, and the sizes of launches. For .cu files only.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "framework/base/error.h"
#include "framework/op/kernel.h"
#include "memory/device.h"
#include "operators/common/cuda/cuda_launch_size.h"

namespace skiff {

inline cudaStream_t StreamOf(const KernelContext& run) {
  return static_cast<cudaStream_t>(run.device().stream->handle());
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
