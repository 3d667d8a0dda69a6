// A stand-in for NCCL: sends, receives, groups and sums (ncclAllReduce, ncclSum of floats), with
// communicators that block or don't. Ranks are threads of this process, each with a device of its
// own.
//
// An operation is work of its stream: it begins in the stream's order, and lasts until the
// operations of other ranks that belong to it have begun, too. A sum adds the ranks in orders that
// are drawn for each 64 numbers; half is rounded after each addition. A call of a communicator that
// doesn't block often returns ncclInProgress. Then the work is given to the stream later, by the
// call of ncclCommGetAsyncError that returns ncclSuccess.
//
// It refuses (ncclInvalidArgument) memory that isn't the device's, streams of other devices, ranks
// that there aren't, messages of a rank to itself, and other types and operations;
// ncclInvalidUsage: two ranks with one device, ncclGroupEnd without ncclGroupStart, a group with
// sums and messages or with several streams of a communicator, and calls while a communicator is in
// progress.
//
// Mistakes that NCCL wouldn't notice are failures of the process (failures.h): messages and sums of
// ranks don't fit each other, all ranks wait for each other, or a call uses a communicator after
// its end. All operations of the communicator's ranks then end, and its state is
// ncclInvalidUsage.
#pragma once

#include <string_view>

namespace skiff::cuda_emulation {

// Returns the stand-in's function of this name, or nullptr.
void* NcclFunction(std::string_view name);

}  // namespace skiff::cuda_emulation
