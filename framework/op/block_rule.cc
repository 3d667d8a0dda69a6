#include "framework/op/block_rule.h"

#include <utility>

#include "framework/op/grad_name.h"

namespace skiff {

using Kind = BlockRule::Kind;

BlockSlots SlotsOf(Kind kind) {
  switch (kind) {
    case Kind::kWhile:
      return {.scopes = "StepScopes", .captured = "X", .results = "Out"};
    case Kind::kConditional:
      return {.scopes = "Scope", .captured = "Input", .results = "Out"};
    case Kind::kRecurrent:
      return {.scopes = "step_scopes", .captured = "parameters", .results = "outputs"};
  }
  return {};
}

std::vector<std::string> SetBeforeIteration(const Op& op, const BlockRule& rule) {
  using Names = std::vector<std::string>;
  if (rule.kind != Kind::kRecurrent) {
    return rule.is_gradient ? op.Attr<Names>(kInnerGradientsAttr, {}) : Names();
  }
  Names names;
  if (!rule.is_gradient) {
    names = op.Input("inputs");
    for (const std::string& state : op.Attr<Names>("ex_states", {})) names.push_back(state);
    return names;
  }
  for (const std::string& output : op.Input("outputs")) names.push_back(GradName(output));
  for (const std::string& state : op.Attr<Names>("states", {})) names.push_back(GradName(state));
  return names;
}

}  // namespace skiff
