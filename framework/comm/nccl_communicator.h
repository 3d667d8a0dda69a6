// Ranks that have a device each, among which NCCL moves the bytes.
#pragma once

#include <memory>

#include "framework/base/place.h"
#include "framework/comm/communicator.h"

namespace skiff {

// Returns the communicator of a rank for memory of `place`, a device that no other rank has. All
// ranks call this at the same time. `host` connects the same ranks on the CPU: it moves NCCL's id,
// and says whether a rank has aborted. Calls of the communicator use `host`, too. NCCL,
// libnccl.so.2, is loaded with the first communicator.
//
// Exchange and Sum append work to a stream of the device, and may wait for other ranks meanwhile.
// The work itself waits on the device for the work of other ranks. So whoever waits for the stream
// may wait for a rank that doesn't come any more: call CheckWait now and then while an event hasn't
// passed. When a call throws an Error (kIo), the work that waits on the device ends, its results
// are lost, and each later call throws the same.
//
// A rank waits `time_limit` seconds at most: in this function, in Exchange and in Sum for the other
// ranks, and by CheckWait for all work of the stream, that of the rank itself included. So the
// limit has to be above the time of the rank's own work.
//
// NCCL doesn't tell if a message has other bytes than its receiver expects, or if ranks call in
// different orders: results are then wrong, or the work never ends. Before the destructor, the work
// of all ranks has to have ended, or the rank to have aborted. The destructor waits up to 10
// seconds for the other ranks to come to theirs.
//
// Throws an Error (kInvalidArgument) for the CPU and for a time limit that isn't above 0, an Error
// (kFailedPrecondition) on all ranks if a rank lacks NCCL or its device or has an old version, and
// what Exchange throws.
std::shared_ptr<Communicator> MakeNcclRank(std::shared_ptr<Communicator> host, Place place,
                                           double time_limit = 600);

}  // namespace skiff
