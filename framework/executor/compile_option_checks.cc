#include "framework/executor/compile_option_checks.h"

#include <cstdint>
#include <set>
#include <string>

#include "framework/base/error.h"
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

}  // namespace

void CheckCompileOptions(const OpRegistry& registry, const Program& program,
                         const CompileOptions& options) {
  CheckForcedKernels(registry, options.kernels);
  CheckMemoryOptions(program, options.memory);
  SKIFF_ENFORCE(options.tuner == nullptr || &options.tuner->registry() == &registry,
                kInvalidArgument, "option tuner: it was made for another registry");
  SKIFF_ENFORCE(options.data_parallel.bucket_bytes >= 0, kInvalidArgument,
                "option data_parallel.bucket_bytes = ", options.data_parallel.bucket_bytes,
                ": expected no negative number");
  SKIFF_ENFORCE(options.max_loop_iterations >= 1, kInvalidArgument,
                "option max_loop_iterations = ", options.max_loop_iterations,
                ": expected at least 1");
  SKIFF_ENFORCE(options.plan_cache_capacity >= 1, kInvalidArgument,
                "option plan_cache_capacity = 0: expected at least 1");
}

}  // namespace skiff
