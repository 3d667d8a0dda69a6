// What host code asks of the CUDA runtime besides memory. In builds without CUDA every function
// throws Error (kFailedPrecondition) that says so; so callers compile the same in both builds.
#pragma once

#include <cstddef>

#include "framework/base/place.h"

namespace skiff {

// Copies `bytes` bytes between any two places and waits for the copy. Error if the runtime refuses.
void CopyBytes(void* to, Place to_place, const void* from, Place from_place, size_t bytes);

// Waits until everything that was put into `stream` (a cudaStream_t) has run. Error, with the
// runtime's reason, if something of it failed.
void WaitForStream(void* stream);

}  // namespace skiff
