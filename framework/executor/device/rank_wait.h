// Waits for work of a device that itself waits for other ranks.
#pragma once

#include "framework/comm/communicator.h"
#include "memory/device.h"

namespace skiff {

// Waits until the event has passed, and asks the communicator meanwhile whether the other ranks
// still come. Throws the Errors of Communicator::CheckWait, such as that for a wait that is longer
// than the communicator's time limit, and Error (kIo) as DeviceEvent::Wait does.
void AwaitEvent(DeviceEvent* event, Communicator* communicator);

}  // namespace skiff
