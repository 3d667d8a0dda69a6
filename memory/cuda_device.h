// The devices of CUDA. In builds without CUDA there are none; so callers compile the same in both
// builds.
#pragma once

#include <cstdint>

#include "memory/device.h"

namespace skiff {

// Returns whether there is a device.
bool HasCudaDevice();

// Returns a device. Throws Error (kFailedPrecondition), with the reason of the CUDA runtime or that
// the build is without CUDA, if there is no such device.
Device& CudaDeviceOf(int32_t index);

}  // namespace skiff
