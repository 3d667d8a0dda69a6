#include "framework/executor/run/graph_launches.h"

#include <algorithm>
#include <iterator>

#include "framework/analysis/dependencies.h"
#include "framework/base/element_count.h"
#include "framework/plan/loop.h"

namespace skiff {
namespace {

// Returns whether the host does more in an iteration than put work into the stream: it makes room
// for the elements of arrays, or runs ops.
bool HostWorksIn(const Loop& loop) {
  return std::ranges::any_of(loop.scope_values,
                             [](const LoopScopeValue& value) { return value.index < 0; }) ||
         std::ranges::any_of(loop.body.instructions,
                             [](const Instruction& inner) { return inner.place.is_cpu(); });
}

bool CanBeCaptured(const Plan& plan, const Instruction& instruction, const BoundKernel& kernel) {
  if (instruction.place.is_cpu()) return false;
  // Ranks may have different plans, and so graphs of other stretches.
  if (IsCollective(instruction)) return false;
  if (instruction.loop != nullptr && HostWorksIn(*instruction.loop)) return false;
  // The host decides from run to run whether a form is made anew.
  if (kernel.has_derived_forms()) return false;
  const auto is_of_host = [&](ValueId value) {
    return value && (plan[value].place.is_cpu() || plan[value].meta.lod_level > 0 ||
                     plan[value].meta.is_array);
  };
  for (size_t i = 0; i < instruction.inputs.size(); ++i) {
    if (instruction.reads_data[i] && is_of_host(instruction.inputs[i])) return false;
  }
  return std::ranges::none_of(instruction.outputs, is_of_host);
}

int64_t Launches(const Instruction& instruction) {
  if (instruction.kind != InstructionKind::kLoop) return 1;
  const Loop& loop = *instruction.loop;
  if (loop.iterations < 0) return 1;
  return std::max<int64_t>(1, MultiplyCounts(loop.iterations, std::ssize(loop.body.instructions)));
}

}  // namespace

bool HasRaggedFeed(const Plan& plan) {
  return std::ranges::any_of(plan.feeds,
                             [&](ValueId feed) { return plan[feed].meta.lod_level > 0; });
}

std::vector<int64_t> GraphLaunches(const Plan& plan, const PlanRunner& runner) {
  std::vector<int64_t> launches;
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    const bool is_captured = CanBeCaptured(plan, instruction, runner.kernel(i));
    launches.push_back(is_captured ? Launches(instruction) : 0);
  }
  return launches;
}

std::vector<size_t> WaitsOf(const Plan& plan) {
  std::vector<size_t> waits;
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    if (plan.instructions[i].waits_for >= 0) waits.push_back(i);
  }
  return waits;
}

}  // namespace skiff
