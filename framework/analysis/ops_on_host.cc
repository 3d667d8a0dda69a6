#include "framework/analysis/ops_on_host.h"

#include <algorithm>
#include <set>

namespace skiff {
namespace {

// Returns whether the op makes single elements for the host out of what the host has.
bool IsForHost(const Plan& plan, const Instruction& instruction,
               const std::set<ValueId>& moved_to_device) {
  if (instruction.kind != InstructionKind::kOp) return false;
  const auto is_small = [&](ValueId value) {
    return !value || (plan[value].meta.shape.element_count() == 1 && !plan[value].meta.is_array);
  };
  return std::ranges::all_of(instruction.inputs, is_small) &&
         std::ranges::all_of(instruction.outputs, [&](ValueId value) {
           return is_small(value) && !moved_to_device.contains(value);
         });
}

}  // namespace

std::map<std::string, int64_t> OpsOnHost(const Plan& plan) {
  std::map<std::string, int64_t> counts;
  if (plan.place.is_cpu()) return counts;
  std::set<ValueId> moved_to_device;
  for (const Instruction& instruction : plan.instructions) {
    const bool is_move =
        instruction.kind == InstructionKind::kCopy && !plan[instruction.outputs[0]].place.is_cpu();
    if (is_move) moved_to_device.insert(instruction.inputs[0]);
  }
  for (const Instruction& instruction : plan.instructions) {
    if (instruction.kind == InstructionKind::kCopy || !instruction.place.is_cpu()) continue;
    if (instruction.def->is_on_host || IsForHost(plan, instruction, moved_to_device)) continue;
    ++counts[instruction.Name()];
  }
  return counts;
}

}  // namespace skiff
