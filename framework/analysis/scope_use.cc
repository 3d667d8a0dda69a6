#include "framework/analysis/scope_use.h"

#include <algorithm>
#include <cstddef>

#include "framework/plan/loop.h"

namespace skiff {

namespace {

// Whether one of the instructions [begin, end) has, among these arguments, one in scope storage
// that holds one of the values.
bool UsesScopeOf(const Plan& plan, const std::vector<ValueId>& values, size_t begin, size_t end,
                 std::vector<ValueId> Instruction::*arguments) {
  const auto in_scope = [&](ValueId value) {
    return value && plan[value].storage == Storage::kScope;
  };
  const auto same_variable = [&](ValueId a, ValueId b) {
    // By name: two values of one scope variable share its tensor.
    return in_scope(a) && in_scope(b) && plan[a].name == plan[b].name;
  };
  // From one half of a loop's body to the other, all iterations run in between.
  const auto at = [&](size_t i) { return plan.instructions.begin() + static_cast<ptrdiff_t>(i); };
  if (begin < end && std::any_of(at(begin), at(end), IsLoopBoundary)) {
    begin = 0;
    end = plan.instructions.size();
  }
  for (size_t i = begin; i < end; ++i) {
    for (ValueId argument : plan.instructions[i].*arguments) {
      const bool hits = std::ranges::any_of(
          values, [&](ValueId value) { return same_variable(value, argument); });
      if (hits) return true;
    }
  }
  return false;
}

}  // namespace

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
