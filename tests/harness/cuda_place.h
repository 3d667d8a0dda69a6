// The device of CUDA that tests run on.
#pragma once

#include <algorithm>

#include "framework/base/place.h"
#include "memory/cuda_device.h"

namespace skiff::harness {

// Returns the last device, or the first where there is none. A thread begins with the first device:
// so code is found that doesn't make its own device the current one.
inline Place CudaPlace() { return Place::Cuda(std::max(CudaDeviceCount(), 1) - 1); }

}  // namespace skiff::harness
