#include "framework/op/grad.h"

#include <algorithm>
#include <utility>

#include "framework/ir/op_role.h"
#include "framework/op/op_context.h"

namespace skiff {

std::string GradName(std::string_view name) { return std::string(name) + kGradSuffix; }

std::string_view ForwardName(std::string_view gradient) {
  const size_t suffix = gradient.rfind(kGradSuffix);
  return suffix == std::string_view::npos ? std::string_view() : gradient.substr(0, suffix);
}

std::vector<std::string> GradContext::InputGrad(std::string_view slot) const {
  std::vector<std::string> names;
  for (const std::string& x : Input(slot)) {
    names.push_back(wants_grad_(x) ? GradName(x) : std::string(kEmptyVarName));
  }
  return names;
}

std::vector<std::string> GradContext::OutputGrad(std::string_view slot) const {
  std::vector<std::string> names;
  for (const std::string& y : Output(slot)) names.push_back(GradName(y));
  return names;
}

GradRule GradOp(StaticText type, std::vector<StaticText> inputs, std::vector<StaticText> outputs) {
  // The rule is made once per op type and called for each op, so it owns its slots.
  return [type, inputs = std::move(inputs),
          outputs = std::move(outputs)](const GradContext& context) {
    Op op(type);
    // All attributes, also those that the gradient op's definition lacks: Fluid's programs have
    // them, too, and CheckOp ignores them.
    op.attrs = context.forward().attrs;
    for (const StaticText slot : inputs) {
      if (slot.ends_with(kGradSuffix)) {
        op.SetInput(slot, context.OutputGrad(ForwardName(slot)));
        continue;
      }
      // An input and an output may have one name (in place, such as Mean); then the input is meant.
      const bool is_input = context.def().FindInput(slot) != nullptr;
      const std::vector<std::string>& names = is_input ? context.Input(slot) : context.Output(slot);
      if (!names.empty()) op.SetInput(slot, names);
    }
    for (const StaticText slot : outputs) {
      if (!context.Input(ForwardName(slot)).empty()) {
        op.SetOutput(slot, context.InputGrad(ForwardName(slot)));
      }
    }
    return std::vector<Op>{std::move(op)};
  };
}

FlopRule GradFlop(FlopRule forward, std::vector<StaticText> outputs) {
  return [forward = std::move(forward), outputs = std::move(outputs)](const OpContext& context) {
    const auto made =
        std::ranges::count_if(outputs, [&](StaticText slot) { return context.HasOutput(slot); });
    return static_cast<double>(made) * forward(context);
  };
}

}  // namespace skiff
