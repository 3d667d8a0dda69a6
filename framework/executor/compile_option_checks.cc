#include "framework/executor/compile_option_checks.h"

#include <cstdint>
#include <set>
#include <string>

#include "framework/base/error.h"
#include "framework/comm/communicator.h"
#include "framework/comm/gather.h"
#include "framework/tuning/kernel_tuner.h"

namespace skiff {
namespace {

// A misspelt op type or candidate would otherwise force nothing, without any notice.
void CheckForcedKernels(const OpRegistry& registry, const KernelNames& kernels) {
  for (const auto& [type, name] : kernels) {
    std::set<std::string> names;
    for (const KernelDef& kernel : registry.Kernels(type)) names.insert(kernel.name);
    if (registry.Get(type).precision != Precision::kNone) names.emplace(kWidened);
    SKIFF_ENFORCE(names.contains(name), kNotFound, "option kernels: op \"", type,
                  "\" has no kernel \"", name, "\"; there are: ", Join(names, ", "));
  }
}

void CheckMemoryOptions(const Program& program, const MemoryOptions& memory) {
  const bool by_name = memory.recompute == Recompute::kCheckpoints;
  SKIFF_ENFORCE(!by_name || !memory.checkpoints.empty(), kInvalidArgument,
                "option memory.recompute = checkpoints: expected names in memory.checkpoints");
  SKIFF_ENFORCE(by_name || memory.checkpoints.empty(), kInvalidArgument,
                "option memory.checkpoints: expected memory.recompute = checkpoints, found ",
                RecomputeName(memory.recompute));
  SKIFF_ENFORCE(memory.recompute != Recompute::kBudget || memory.budget_bytes > 0, kInvalidArgument,
                "option memory.budget_bytes = ", memory.budget_bytes,
                ": expected a positive budget");
  const int64_t alignment = memory.flat_alignment_bytes;
  SKIFF_ENFORCE(alignment > 0 && (alignment & (alignment - 1)) == 0, kInvalidArgument,
                "option memory.flat_alignment_bytes = ", alignment, ": expected a power of two");
  const bool saves_on_request =
      memory.recompute != Recompute::kNothing && memory.recompute != Recompute::kAlmostFree;
  SKIFF_ENFORCE(!saves_on_request || memory.policy != ReusePolicy::kNone, kInvalidArgument,
                "option memory.recompute = ", RecomputeName(memory.recompute),
                " with memory.policy = none: nothing would be saved, expected another policy");
  for (const std::string& name : memory.skip) {
    SKIFF_ENFORCE(program.root()->FindVar(name) != nullptr, kNotFound,
                  "option memory.skip: the program has no variable \"", name, "\"");
  }
}

// A communicator of other ranks or of another place would give other sums, or none, without any
// notice.
void CheckDataParallelOptions(const DataParallelOptions& options, Place place) {
  SKIFF_ENFORCE(options.bucket_bytes >= 0, kInvalidArgument,
                "option data_parallel.bucket_bytes = ", options.bucket_bytes,
                ": expected no negative number");
  if (RankCount(options.communicator.get()) == 1) return;
  SKIFF_ENFORCE(options.communicator->place().is_cpu(), kInvalidArgument,
                "option data_parallel.communicator is of ",
                PlaceName(options.communicator->place()), ", expected a communicator of the CPU");
  if (place.is_cpu()) return;
  SKIFF_ENFORCE(options.device_communicator != nullptr, kInvalidArgument,
                "option data_parallel.device_communicator: there is none for the ",
                options.communicator->world().size, " ranks of a program on ", PlaceName(place),
                ", expected one (MakeNcclRank makes it)");
  SKIFF_ENFORCE(options.device_communicator->place() == place, kInvalidArgument,
                "option data_parallel.device_communicator is of ",
                PlaceName(options.device_communicator->place()), ", expected one of ",
                PlaceName(place), ", where the program runs");
  const World& found = options.device_communicator->world();
  const World& expected = options.communicator->world();
  SKIFF_ENFORCE(found.rank == expected.rank && found.size == expected.size, kInvalidArgument,
                "option data_parallel.device_communicator is of rank ", found.rank, " of ",
                found.size, ", expected rank ", expected.rank, " of ", expected.size,
                " as in data_parallel.communicator");
}

}  // namespace

void CheckCompileOptions(const OpRegistry& registry, const Program& program, Place place,
                         const CompileOptions& options) {
  CheckForcedKernels(registry, options.kernels);
  CheckMemoryOptions(program, options.memory);
  SKIFF_ENFORCE(options.tuner == nullptr || &options.tuner->registry() == &registry,
                kInvalidArgument, "option tuner: it was made for another registry");
  CheckDataParallelOptions(options.data_parallel, place);
  SKIFF_ENFORCE(options.max_loop_iterations >= 1, kInvalidArgument,
                "option max_loop_iterations = ", options.max_loop_iterations,
                ": expected at least 1");
  SKIFF_ENFORCE(options.plan_cache_capacity >= 1, kInvalidArgument,
                "option plan_cache_capacity = 0: expected at least 1");
}

}  // namespace skiff
