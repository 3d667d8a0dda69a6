#include "framework/comm/launched_ranks.h"

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "framework/base/error.h"
#include "framework/comm/mpi_communicator.h"

namespace skiff {
namespace {

// What a launcher says in an environment variable.
struct Launch {
  std::string variable;  // with its value
  int32_t size = 0;      // ranks; 0: the launcher doesn't say
};

int32_t SizeFrom(const char* variable, std::string_view value) {
  int32_t size = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), size);
  const bool is_number = error == std::errc() && end == value.data() + value.size();
  SKIFF_ENFORCE(is_number && size >= 1, kInvalidArgument, "environment variable ", variable, "=",
                value, ", expected a number of ranks");
  return size;
}

std::optional<Launch> FindLaunch() {
  // Of mpirun of Open MPI; of launchers with the interface PMI, such as MPICH's; of a step that
  // srun runs. A shell in an allocation of Slurm, where srun or mpirun may be called, is no such
  // step, or a step of one task.
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const char* const value = std::getenv(variable);
    if (value == nullptr) continue;
    return Launch{.variable = StrCat(variable, "=", value), .size = SizeFrom(variable, value)};
  }
  const char* const rank = std::getenv("PMIX_RANK");
  if (rank == nullptr) return std::nullopt;
  return Launch{.variable = StrCat("PMIX_RANK=", rank)};
}

std::shared_ptr<Communicator> StartRanks(const Launch& launch, double time_limit) {
  try {
    return StartMpi(time_limit);
  } catch (const Error& error) {
    throw error.WithContext(StrCat(launch.variable, " (a launcher has started ranks)"));
  }
}

}  // namespace

std::shared_ptr<Communicator> LaunchedRanks(const LaunchOptions& options) {
  const std::optional<Launch> launch = FindLaunch();
  if (!launch.has_value() || launch->size == 1) return nullptr;
  std::shared_ptr<Communicator> communicator = StartRanks(*launch, options.time_limit);
  if (communicator->world().size > 1) return communicator;
  communicator.reset();
  SKIFF_ENFORCE(launch->size == 0, kFailedPrecondition, launch->variable,
                " (a launcher has started ranks), but MPI knows one rank only. Is the launcher of "
                "another MPI library? Call mpirun of the library that Skiff's plug-in was built "
                "with; with Slurm, `srun --mpi=pmix`");
  return nullptr;
}

}  // namespace skiff
