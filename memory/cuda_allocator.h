// Device memory through the CUDA runtime. Only in builds with CUDA.
#pragma once

#include <cstdint>

#include "memory/allocator.h"

namespace skiff {

// The allocator of a device. Error if there is no such device, with the runtime's reason.
Allocator& CudaAllocatorOf(int32_t device);

}  // namespace skiff
