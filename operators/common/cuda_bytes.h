// Copies and fills within a device's memory. Includes none of CUDA's headers.
#pragma once

#include <cstdint>

#include "framework/op/kernel.h"

namespace skiff {

// Copies bytes, unless both are the same memory.
void CopyOnDevice(const KernelContext& run, const void* from, void* to, int64_t bytes);
// Set bytes to a value in [0, 255]. `stream`: a cudaStream_t.
void FillBytesOnDevice(const KernelContext& run, void* to, int byte, int64_t bytes);
void FillBytesOnDevice(void* stream, void* to, int byte, int64_t bytes);

}  // namespace skiff
