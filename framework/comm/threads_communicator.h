// Ranks that are threads of one process, each with memory on the CPU: for tests, and for a process
// that runs an executor a device.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "framework/comm/communicator.h"

namespace skiff {

struct ThreadRanksOptions {
  // A rank that has waited so many seconds for a message throws an Error. Infinity: none does.
  double time_limit = 600;
  // Unless it is 0: ranks pause for drawn times before messages, and Sum adds in drawn orders. Code
  // that relies on a moment or an order then fails in some runs.
  uint64_t seed = 0;
};

// Returns the communicators of ranks 0 to size - 1, one for each thread. A message is copied from
// the memory of its sender to the memory of its receiver, so Exchange also waits until the messages
// of its own rank are received.
//
// A rank ends when its communicator is destroyed, or after Exchange or Sum has thrown. Then all
// calls of other ranks throw that wait for it, and no other calls; after Abort, all calls throw.
//
// Throws an Error (kInvalidArgument) unless the size is at least 1 and the limit is above 0.
std::vector<std::shared_ptr<Communicator>> MakeThreadRanks(int32_t size,
                                                           const ThreadRanksOptions& options = {});

}  // namespace skiff
