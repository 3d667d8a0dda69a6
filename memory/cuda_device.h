// The devices of CUDA. In builds without CUDA every function throws Error (kFailedPrecondition)
// that says so; so callers compile the same in both builds.
#pragma once

#include <cstdint>

#include "memory/device.h"

namespace skiff {

// Returns a device. Throws Error, with the reason of the CUDA runtime, if there is no such device.
Device& CudaDeviceOf(int32_t index);

}  // namespace skiff
