#include "framework/analysis/widened_ops.h"

#include <algorithm>
#include <set>
#include <vector>

#include "framework/plan/loop.h"

namespace skiff {
namespace {

// Calls use(instruction) for each op of the plan, also for those that run fused.
template <typename Use>
void ForEachOp(const std::vector<Instruction>& instructions, const Use& use) {
  for (const Instruction& instruction : instructions) {
    if (instruction.kind == InstructionKind::kFused) ForEachOp(instruction.members, use);
    if (instruction.kind == InstructionKind::kOp) use(instruction);
  }
}

// Returns the float32 values between the casts of the pass and the ops that it has widened.
std::set<ValueId> WideValues(const Plan& plan) {
  std::set<const Op*> made;
  for (const auto& op : plan.made_ops) {
    if (op->type == "cast") made.insert(op.get());
  }
  std::set<ValueId> wide;
  ForEachOp(plan.instructions, [&](const Instruction& instruction) {
    if (!made.contains(instruction.op)) return;
    const ValueId from = instruction.inputs[0];
    const ValueId to = instruction.outputs[0];
    if (IsHalf(plan[from].meta.dtype)) wide.insert(to);
    if (IsHalf(plan[to].meta.dtype)) wide.insert(from);
  });
  return wide;
}

void Count(const Plan& plan, std::map<std::string, int64_t>* counts) {
  const std::set<ValueId> wide = WideValues(plan);
  const auto is_wide = [&](ValueId value) { return value && wide.contains(value); };
  ForEachOp(plan.instructions, [&](const Instruction& instruction) {
    if (instruction.def->type == "cast") return;
    if (std::ranges::any_of(instruction.inputs, is_wide) ||
        std::ranges::any_of(instruction.outputs, is_wide)) {
      ++(*counts)[instruction.op->type];
    }
  });
  for (const Instruction& instruction : plan.instructions) {
    if (instruction.kind == InstructionKind::kLoop) Count(instruction.loop->body, counts);
  }
}

}  // namespace

std::map<std::string, int64_t> WidenedOps(const Plan& plan) {
  std::map<std::string, int64_t> counts;
  Count(plan, &counts);
  return counts;
}

}  // namespace skiff
