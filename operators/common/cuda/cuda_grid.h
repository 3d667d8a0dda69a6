// The size of a launch, and where it is issued. Without CUDA's headers: the host's compiler
// compiles what prepares kernels of many ops once, instead of nvcc in the .cu file of each.
#pragma once

#include <cstdint>

#include "framework/op/kernel.h"
#include "memory/device.h"
#include "operators/common/cuda/cuda_launch_size.h"

namespace skiff {

// Returns a grid of one thread for each of `count` parts of work. If that were too many blocks,
// threads take further parts, a grid apart.
inline CudaGrid GridOf(const KernelContext& run, int64_t count) {
  return {.blocks = CudaBlocksOfThreads(count, kMaxElementBlocks),
          .stream = run.device().stream->handle()};
}

// The same for threads that take vectors of elements of this many bytes.
inline CudaGrid GridOfVectors(const KernelContext& run, int64_t count, int64_t bytes) {
  const int64_t size = VectorSize(bytes);
  return GridOf(run, (count + size - 1) / size);
}

}  // namespace skiff
