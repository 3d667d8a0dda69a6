#include "framework/analysis/scope_use.h"

#include <algorithm>

namespace skiff {

bool WritesScopeOf(const Plan& plan, const std::vector<int32_t>& values, size_t begin, size_t end) {
  const auto in_scope = [&](int32_t value) {
    return value >= 0 && plan.values[static_cast<size_t>(value)].storage == Storage::kScope;
  };
  const auto same_variable = [&](int32_t a, int32_t b) {
    return in_scope(a) && in_scope(b) &&
           plan.values[static_cast<size_t>(a)].name == plan.values[static_cast<size_t>(b)].name;
  };
  for (size_t i = begin; i < end; ++i) {
    for (int32_t output : plan.instructions[i].outputs) {
      const bool hits =
          std::ranges::any_of(values, [&](int32_t value) { return same_variable(value, output); });
      if (hits) return true;
    }
  }
  return false;
}

ConstantInputs::ConstantInputs(const Plan& plan) : plan_(plan) {
  for (const Instruction& instruction : plan.instructions) {
    for (const int32_t output : instruction.outputs) {
      if (output < 0) continue;
      const PlanValue& value = plan.values[static_cast<size_t>(output)];
      if (value.storage == Storage::kScope) written_.insert(value.name);
    }
  }
}

std::vector<bool> ConstantInputs::Of(const Instruction& instruction) const {
  std::vector<bool> is_constant;
  for (const int32_t input : instruction.inputs) {
    const PlanValue* value = input < 0 ? nullptr : &plan_.values[static_cast<size_t>(input)];
    is_constant.push_back(value != nullptr && value->storage == Storage::kScope &&
                          !written_.contains(value->name));
  }
  return is_constant;
}

}  // namespace skiff
