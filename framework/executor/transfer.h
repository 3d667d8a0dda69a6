// Copies of values between the CPU and a device, and within a device.
#pragma once

#include <memory>

#include "framework/executor/device_link.h"
#include "framework/op/kernel.h"

namespace skiff {

// Returns the kernel of a copy of which at least one side is on the link's device. It only puts the
// copy into the stream; DeviceLink::AwaitHost waits for it. The link must outlive it.
std::unique_ptr<Kernel> MakeTransfer(DeviceLink* link);

}  // namespace skiff
