// The allocators of device memory and of page-locked CPU memory. Only in builds with CUDA.
#pragma once

#include <cstdint>

#include "memory/caching_allocator.h"

namespace skiff {

// Returns the options of a device's allocator. Its classes are blocks up to 1 MiB and larger ones,
// on segments that grow: each class of each stream reserves as many addresses as the device has
// memory, and maps memory to them in chunks of 2 and 16 MiB. If the driver can't map memory (or
// `expandable` is false), blocks up to 1 MiB are cut from 2 MiB of cudaMalloc, blocks up to 10 MiB
// from 20 MiB, and each larger block is a segment. All blocks begin at multiples of 256 bytes.
CachingOptions CudaCachingOptions(int32_t device, bool expandable = true);
// Returns the options for page-locked memory: blocks up to 256 KiB share segments of 1 MiB, each
// larger block is a segment.
CachingOptions PinnedCachingOptions();

// Returns the process-wide allocator of a device. Throws Error, with the reason of the CUDA
// runtime, if there is no such device.
Allocator& CudaAllocatorOf(int32_t device);

// Returns the process-wide allocator of page-locked memory. Throws Error, with the reason of the
// CUDA runtime, if there is no device.
Allocator& CudaPinnedAllocator();

}  // namespace skiff
