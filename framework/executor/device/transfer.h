// Copies of values between the CPU and a device, and within a device.
#pragma once

#include <cstdint>
#include <memory>

#include "framework/executor/device/device_link.h"
#include "framework/op/kernel.h"

namespace skiff {

// Returns the kernel of a copy of which at least one side is on the link's device. It puts the copy
// into the stream; DeviceLink::AwaitHost waits for it. The link must outlive it.
//
// `staged_bytes`: 0, or the most bytes of an input on the CPU that the host may change as soon as
// the kernel has run, a feed for example. StagedCopy reads such inputs at once, and may wait.
std::unique_ptr<Kernel> MakeTransfer(DeviceLink* link, int64_t staged_bytes);

}  // namespace skiff
