// The ranks that a launcher of MPI, such as mpirun or srun, has started.
#pragma once

#include <memory>

#include "framework/comm/communicator.h"

namespace skiff {

struct LaunchOptions {
  // Seconds without progress after which a waiting rank throws an Error.
  double time_limit = 600;
};

// Returns the communicator of this process among the processes that a launcher has started;
// nullptr if no launcher has, or if it has started this one alone. Environment variables of the
// launchers tell: OMPI_COMM_WORLD_SIZE, PMI_SIZE, SLURM_STEP_NUM_TASKS, PMIX_RANK. See StartMpi for
// how the communicator ends, and for what the time limit doesn't hold.
//
// Throws what StartMpi throws, with the launcher's variable before it, and an Error
// (kFailedPrecondition) if the launcher has started several ranks of which MPI doesn't know.
std::shared_ptr<Communicator> LaunchedRanks(const LaunchOptions& options = {});

}  // namespace skiff
