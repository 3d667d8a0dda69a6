#include "framework/analysis/scope_use.h"

#include <algorithm>
#include <cstddef>

#include "framework/plan/loop.h"

namespace skiff {

namespace {

// Variables by name: two values of one scope variable share its tensor.
using Variables = std::vector<std::string_view>;

Variables VariablesOf(const Plan& plan, const std::vector<ValueId>& values) {
  Variables variables;
  for (const ValueId value : values) {
    if (value && plan[value].storage == Storage::kScope) variables.push_back(plan[value].name);
  }
  return variables;
}

bool HaveOneOf(const Plan& plan, const Variables& variables, const std::vector<ValueId>& values) {
  return std::ranges::any_of(values, [&](ValueId value) {
    return value && plan[value].storage == Storage::kScope &&
           std::ranges::find(variables, plan[value].name) != variables.end();
  });
}

bool UsesScopeOf(const Plan& plan, const std::vector<ValueId>& values, size_t begin, size_t end,
                 std::vector<ValueId> Instruction::*arguments) {
  const Variables variables = VariablesOf(plan, values);
  if (variables.empty()) return false;
  const InstructionRange range = RunWith(plan, begin, end);
  for (size_t i = range.begin; i < range.end; ++i) {
    if (HaveOneOf(plan, variables, plan.instructions[i].*arguments)) return true;
  }
  return false;
}

}  // namespace

bool WritesScopeOf(const Plan& plan, const std::vector<ValueId>& values,
                   const Instruction& instruction) {
  return HaveOneOf(plan, VariablesOf(plan, values), instruction.outputs);
}

bool ReadsScopeOf(const Plan& plan, const std::vector<ValueId>& values,
                  const Instruction& instruction) {
  return HaveOneOf(plan, VariablesOf(plan, values), instruction.inputs);
}

InstructionRange RunWith(const Plan& plan, size_t begin, size_t end) {
  const auto at = [&](size_t i) { return plan.instructions.begin() + static_cast<ptrdiff_t>(i); };
  const bool runs_all = begin < end && std::any_of(at(begin), at(end), IsLoopBoundary);
  return runs_all ? InstructionRange{0, plan.instructions.size()} : InstructionRange{begin, end};
}

bool WritesScopeOf(const Plan& plan, const std::vector<ValueId>& values, size_t begin, size_t end) {
  return UsesScopeOf(plan, values, begin, end, &Instruction::outputs);
}

bool ReadsScopeOf(const Plan& plan, const std::vector<ValueId>& values, size_t begin, size_t end) {
  return UsesScopeOf(plan, values, begin, end, &Instruction::inputs);
}

ConstantInputs::ConstantInputs(const Plan& plan) : plan_(plan) {
  for (const Instruction& instruction : plan.instructions) {
    for (const ValueId output : instruction.outputs) {
      if (!output) continue;
      const PlanValue& value = plan[output];
      if (value.storage == Storage::kScope) written_.insert(value.name);
    }
  }
}

std::vector<bool> ConstantInputs::Of(const Instruction& instruction) const {
  std::vector<bool> is_constant;
  for (const ValueId input : instruction.inputs) {
    const PlanValue* value = input ? &plan_[input] : nullptr;
    is_constant.push_back(value != nullptr && value->storage == Storage::kScope &&
                          !written_.contains(value->name));
  }
  return is_constant;
}

}  // namespace skiff
