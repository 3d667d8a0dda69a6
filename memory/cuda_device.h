// The devices of CUDA. In builds without CUDA there are none; so callers compile the same in both
// builds.
#pragma once

#include <cstdint>

#include "memory/device.h"

namespace skiff {

// Returns how many devices there are: those that CUDA_VISIBLE_DEVICES names, if it is set.
int32_t CudaDeviceCount();
// Returns whether there is a device.
inline bool HasCudaDevice() { return CudaDeviceCount() > 0; }

// Returns a device by its number. Throws Error (kFailedPrecondition) if there is no such device:
// with the reason of the CUDA runtime, with the number of devices that there are, or that the build
// is without CUDA.
Device& CudaDeviceOf(int32_t index);

}  // namespace skiff
