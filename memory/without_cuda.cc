// Replaces cuda_allocator.cc and cuda_device.cc in a build without CUDA: there is no device.
#include "framework/base/error.h"
#include "memory/cuda_allocator.h"
#include "memory/cuda_device.h"

namespace skiff {

Allocator& CudaAllocatorOf(int32_t device) {
  Throw(ErrorCode::kFailedPrecondition, "place ", Place::Cuda(device), ": built without CUDA");
}

int32_t CudaDeviceCount() { return 0; }

Device& CudaDeviceOf(int32_t index) {
  Throw(ErrorCode::kFailedPrecondition, "place ", Place::Cuda(index), ": built without CUDA");
}

}  // namespace skiff
