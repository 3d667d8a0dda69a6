// Replaces cuda_allocator.cc and cuda_copy.cc in a build without CUDA: every function throws.
#include "framework/base/error.h"
#include "memory/cuda_allocator.h"
#include "memory/cuda_copy.h"

namespace skiff {

Allocator& CudaAllocatorOf(int32_t device) {
  Throw(ErrorCode::kFailedPrecondition, "place ", Place::Cuda(device), ": built without CUDA");
}

Allocator& CudaPinnedAllocator() {
  Throw(ErrorCode::kFailedPrecondition, "pinned memory: built without CUDA");
}

void CopyBytes(void*, Place to_place, const void*, Place from_place, size_t) {
  Throw(ErrorCode::kFailedPrecondition, "copy from ", from_place, " to ", to_place,
        ": built without CUDA");
}

void WaitForStream(void*) {
  Throw(ErrorCode::kFailedPrecondition, "wait for a stream: built without CUDA");
}

}  // namespace skiff
