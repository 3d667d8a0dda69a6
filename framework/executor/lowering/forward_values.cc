#include "framework/executor/lowering/forward_values.h"

#include <algorithm>

#include "framework/base/error.h"

namespace skiff {
namespace {

// Returns the type whose gradient an op of this type computes: "" if it computes none.
std::string_view ForwardTypeOf(std::string_view type) {
  constexpr std::string_view kSuffix = "_grad";
  return type.ends_with(kSuffix) ? type.substr(0, type.size() - kSuffix.size()) : "";
}

// Returns whether `op`, of the type of the gradient, has the variables of `forward` in the slots
// that both have.
bool HasVariablesOf(const Op& forward, const Op& op) {
  return std::ranges::all_of(op.inputs, [&](const SlotArguments& slot) {
    const bool is_input = !forward.Input(slot.slot).empty();
    const auto& of_forward = is_input ? forward.Input(slot.slot) : forward.Output(slot.slot);
    return of_forward.empty() || slot.arguments == of_forward;
  });
}

}  // namespace

ForwardValues::ForwardValues(const Plan& plan) : plan_(plan) {
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    if (instruction.kind == InstructionKind::kOp) by_type_[instruction.op->type].push_back(i);
  }
}

std::map<std::string, ValueId> ForwardValues::Of(const Block& gradient_block,
                                                 size_t position) const {
  const Op& op = *gradient_block.ops()[position];
  const auto of_type = by_type_.find(ForwardTypeOf(op.type));
  if (of_type == by_type_.end()) return {};
  std::vector<std::map<std::string, ValueId>> found;
  const Op* of_all = nullptr;
  for (const size_t i : of_type->second) {
    const Instruction& forward = plan_.instructions[i];
    if (!HasVariablesOf(*forward.op, op)) continue;
    of_all = forward.op;
    found.push_back(ValuesOf(forward, op));
  }
  if (found.empty()) return {};
  const auto is_first = [&](const auto& values) { return values == found.front(); };
  if (std::ranges::all_of(found, is_first)) return found.front();
  // Their gradients come in the opposite order.
  const auto is_same = [&](const auto& other) {
    return other->type == op.type && HasVariablesOf(*of_all, *other);
  };
  const auto begin = gradient_block.ops().begin();
  const auto before = std::count_if(begin, begin + static_cast<ptrdiff_t>(position), is_same);
  const auto all = std::ranges::count_if(gradient_block.ops(), is_same);
  SKIFF_ENFORCE(static_cast<size_t>(all) == found.size(), kUnimplemented, op.type,
                ": is the gradient of one of ", found.size(),
                " ops that have the same variables, which other ops overwrite in between: "
                "expected as many gradient ops, found ",
                all);
  return found[found.size() - 1 - static_cast<size_t>(before)];
}

std::map<std::string, ValueId> ForwardValues::ValuesOf(const Instruction& forward,
                                                       const Op& gradient) const {
  std::map<std::string, ValueId> values;
  for (const SlotArguments& slot : gradient.inputs) {
    const bool is_input = !forward.op->Input(slot.slot).empty();
    if (!is_input && forward.op->Output(slot.slot).empty()) continue;
    // The gradient is that by the statistics before.
    const bool is_running = std::ranges::any_of(
        forward.def->running_state, [&](const auto& pair) { return pair.second == slot.slot; });
    if (is_running) continue;
    for (size_t i = 0; i < slot.arguments.size(); ++i) {
      const ValueId value =
          is_input ? forward.InputIn(slot.slot, i) : forward.OutputIn(slot.slot, i);
      if (!value || plan_[value].meta.is_array) continue;
      const bool is_one = values.emplace(slot.arguments[i], value).first->second == value;
      SKIFF_ENFORCE(is_one, kUnimplemented, gradient.type, ": reads \"", slot.arguments[i],
                    "\" as it was before and after ", forward.op->type,
                    ", which has overwritten it: expected another variable for its output");
    }
  }
  return values;
}

}  // namespace skiff
