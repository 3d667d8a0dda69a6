// CUDA's kinds of memory, and its events, for the caching allocator. Only in builds with CUDA.
#pragma once

#include <cstdint>
#include <memory>

#include "memory/segment_source.h"
#include "memory/virtual_segment_source.h"

namespace skiff {

// Returns a source of a device's memory by cudaMalloc, in whole segments.
std::unique_ptr<SegmentSource> MakeCudaMallocSource(int32_t device);

// Returns a source of page-locked CPU memory by cudaHostAlloc, usable by all devices.
std::unique_ptr<SegmentSource> MakeCudaPinnedSource();

// Returns the driver's functions to map memory to addresses (cuMemMap and related), accessible to
// the device. Returns nullptr if device or driver doesn't support it.
std::unique_ptr<VirtualMemory> MakeCudaVirtualMemory(int32_t device);

// Returns events for streams of a device; -1 means the device that is current when they are
// recorded. For a stream of another device, recording waits until its work is done.
std::unique_ptr<StreamEvents> MakeCudaEvents(int32_t device);

// Returns the bytes of a device's memory, used ones included, or 0 if the driver doesn't say.
int64_t CudaMemoryBytes(int32_t device);

}  // namespace skiff
