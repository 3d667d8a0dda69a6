// Copies and fills within a device's memory, in the stream of a run. Includes none of CUDA's
// headers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "framework/op/kernel.h"
#include "memory/device.h"

namespace skiff {

// Copies bytes, unless both are the same memory.
inline void CopyOnDevice(const KernelContext& run, const void* from, void* to, int64_t bytes) {
  if (from == to || bytes == 0) return;
  const DeviceContext& device = run.device();
  device.stream->Copy(to, device.place, from, device.place, static_cast<size_t>(bytes));
}

// Sets bytes to a value in [0, 255].
inline void FillBytesOnDevice(const KernelContext& run, void* to, int byte, int64_t bytes) {
  if (bytes == 0) return;
  run.device().stream->Fill(to, static_cast<unsigned char>(byte), static_cast<size_t>(bytes));
}

}  // namespace skiff
