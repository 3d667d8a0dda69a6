// Ranks that are processes, which a launcher of MPI has started. Memory is on the CPU.
#pragma once

#include <memory>

#include "framework/comm/communicator.h"

namespace skiff {

// Starts MPI by Skiff's plug-in, which all ranks do, and returns the communicator of this process.
// A process can start MPI once. A rank that has waited `time_limit` seconds in Exchange or Sum
// without any progress throws an Error.
//
// The start and the end have no limit of Skiff's: this function waits until all ranks start MPI
// (MPI_Init), and the destructor until all ranks have come to theirs and MPI has ended
// (MPI_Finalize). A rank that hangs before or after its work is left to a limit of the launcher.
//
// Whoever holds the communicator destroys it before the process exits. That ends MPI after it has
// waited for all ranks, since a rank may still have work to do. After an Error of Exchange or Sum,
// and where a process exits with a communicator, all ranks are aborted. (An exception that destroys
// the communicator doesn't abort: main() may catch and report it before the process exits.) A child
// that the process forks may destroy the communicator and exit, which changes nothing for the
// ranks; it must not use the communicator otherwise.
//
// Throws what LoadMpiPlugin throws; an Error (kInvalidArgument) unless the limit is above 0; an
// Error (kFailedPrecondition) if this process has a communicator already; an Error (kIo) if MPI
// can't start.
std::shared_ptr<Communicator> StartMpi(double time_limit);

}  // namespace skiff
