// The allocator and the device of each place.
//
// A device of CUDA exists in builds with CUDA, where a driver is found. Tests add an emulated one
// (tests/harness/emulated_device.h).
#pragma once

#include <cstddef>
#include <memory>

#include "framework/base/place.h"
#include "memory/allocator.h"
#include "memory/device.h"

namespace skiff {

// Returns the process-wide allocator of a place. Throws Error if this build or machine lacks the
// place.
Allocator& AllocatorOf(Place place);

// Returns the device of a place. Throws Error (kInvalidArgument) for the CPU, and
// (kFailedPrecondition) if this build or machine lacks the device.
Device& DeviceOf(Place place);

// Makes the place's device the thread's current one while the result lives. Changes nothing for the
// CPU. Throws the Errors of DeviceOf.
DeviceUse UsePlace(Place place);

// Makes `device` the device of a place without one, until the end of the process. For tests. Throws
// Error (kAlreadyExists) if one was added before.
void AddDevice(Place place, std::unique_ptr<Device> device);

// Copies bytes between any two places by Device::CopyNow. At least one place isn't the CPU.
void CopyBytes(void* to, Place to_place, const void* from, Place from_place, size_t bytes);

}  // namespace skiff
