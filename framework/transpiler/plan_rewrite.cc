#include "framework/transpiler/plan_rewrite.h"

#include <utility>
#include <vector>

namespace skiff {

PlanRewrite::PlanRewrite(const PassContext& context, Plan* plan)
    : PlanUses(*plan), context_(context), plan_(*plan) {}

bool PlanRewrite::Is(size_t i, std::string_view type) const {
  const Instruction& instruction = plan_.instructions[i];
  return instruction.kind == InstructionKind::kOp && instruction.op->type == type &&
         context_.ForcedKernel(instruction.op->type).empty();
}

bool PlanRewrite::AddsToRows(const Instruction& add) const {
  const Shape& rows = ShapeOf(add.InputIn("X"));
  const Shape& bias = ShapeOf(add.InputIn("Y"));
  const int64_t axis = ContextOf(plan_, add).IntAttr("axis");
  return rows.rank() > 0 && bias.rank() == 1 && bias[0] == rows[rows.rank() - 1] &&
         (axis == -1 || axis == rows.rank() - 1);
}

bool PlanRewrite::HasKernel(const Instruction& instruction) const {
  return context_.registry.FindKernel(ContextOf(plan_, instruction)) != nullptr;
}

void PlanRewrite::Replace(size_t at, Instruction made) { made_.emplace(at, std::move(made)); }

// All at once, so that the positions and uses that a pass works with stay valid until it has seen
// the whole plan.
int64_t PlanRewrite::Apply() {
  const auto replacements = static_cast<int64_t>(made_.size());
  std::vector<Instruction> rewritten;
  for (size_t i = 0; i < plan_.instructions.size(); ++i) {
    const auto made = made_.find(i);
    if (made != made_.end()) {
      rewritten.push_back(std::move(made->second));
    } else if (!dropped_.contains(i)) {
      rewritten.push_back(std::move(plan_.instructions[i]));
    }
  }
  plan_.instructions = std::move(rewritten);
  return replacements;
}

}  // namespace skiff
