// Device and page-locked memory. Only in builds with CUDA.
#pragma once

#include <cstdint>

#include "memory/caching_allocator.h"

namespace skiff {

// Blocks up to 1 MiB and larger ones, on segments that grow: each class of each stream has as many
// addresses as the device has memory, behind which memory comes in chunks of 2 and 16 MiB. Where
// the driver can't map memory (or `expandable` is false) blocks are cut from cudaMalloc's: up to
// 1 MiB from 2 MiB, up to 10 MiB from 20 MiB, larger ones from segments of their own.
// All begin at multiples of 256 bytes.
CachingOptions CudaCachingOptions(int32_t device, bool expandable = true);
// Page-locked memory: blocks up to 256 KiB from segments of 1 MiB, larger ones from their own.
CachingOptions PinnedCachingOptions();

// The process-wide allocator of a device. Error if there is no such device, with the runtime's
// reason.
Allocator& CudaAllocatorOf(int32_t device);

// The process-wide allocator of page-locked memory. Error if there is no device, with the runtime's
// reason.
Allocator& CudaPinnedAllocator();

}  // namespace skiff
