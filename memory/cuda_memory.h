// CUDA's kinds of memory, and its events. Only in builds with CUDA.
#pragma once

#include <cstdint>
#include <memory>

#include "memory/segment_source.h"
#include "memory/virtual_segment_source.h"

namespace skiff {

// Memory of a device by cudaMalloc, in whole segments.
std::unique_ptr<SegmentSource> MakeCudaMallocSource(int32_t device);

// Page-locked memory of the CPU, by cudaHostAlloc, for all devices.
std::unique_ptr<SegmentSource> MakeCudaPinnedSource();

// The driver's mapping of memory to addresses (cuMemMap and its like), accessible to the device
// itself. nullptr where device or driver don't have it.
std::unique_ptr<VirtualMemory> MakeCudaVirtualMemory(int32_t device);

// Events on streams of a device; -1: of the device that is current when they are recorded. A stream
// of another device is waited for instead.
std::unique_ptr<StreamEvents> MakeCudaEvents(int32_t device);

// Bytes of a device's memory, used ones included; 0 if the driver doesn't tell.
int64_t CudaMemoryBytes(int32_t device);

}  // namespace skiff
