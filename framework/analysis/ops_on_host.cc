#include "framework/analysis/ops_on_host.h"

#include <algorithm>
#include <set>

#include "framework/analysis/body_places.h"

namespace skiff {
namespace {

// The values that copies take from one place to another.
struct Moved {
  std::set<ValueId> to_device;    // before the copy
  std::set<ValueId> from_device;  // after it
};

// Returns whether the op makes single elements for the host out of what the host has.
bool IsForHost(const Plan& plan, const Instruction& instruction, const Moved& moved) {
  return instruction.kind == InstructionKind::kOp &&
         std::ranges::all_of(instruction.inputs,
                             [&](ValueId input) {
                               return !input || (IsOneElement(plan[input].meta) &&
                                                 !moved.from_device.contains(input));
                             }) &&
         std::ranges::all_of(instruction.outputs, [&](ValueId output) {
           return !output ||
                  (IsOneElement(plan[output].meta) && !moved.to_device.contains(output) &&
                   std::ranges::count(plan.fetches, output) == 0);
         });
}

}  // namespace

std::map<std::string, int64_t> OpsOnHost(const Plan& plan) {
  std::map<std::string, int64_t> counts;
  if (plan.place.is_cpu()) return counts;
  Moved moved;
  for (const Instruction& instruction : plan.instructions) {
    if (instruction.kind != InstructionKind::kCopy) continue;
    const ValueId from = instruction.inputs[0];
    const ValueId to = instruction.outputs[0];
    if (plan[from].place == plan[to].place) continue;
    plan[to].place.is_cpu() ? moved.from_device.insert(to) : moved.to_device.insert(from);
  }
  for (const Instruction& instruction : plan.instructions) {
    if (instruction.kind == InstructionKind::kCopy || !instruction.place.is_cpu()) continue;
    if (instruction.def->is_on_host || IsForHost(plan, instruction, moved)) continue;
    ++counts[instruction.Name()];
  }
  return counts;
}

}  // namespace skiff
