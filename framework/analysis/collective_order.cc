#include "framework/analysis/collective_order.h"

#include <cstdint>
#include <optional>
#include <span>

#include "framework/analysis/dependencies.h"
#include "framework/analysis/rank_differences.h"
#include "framework/base/error.h"
#include "framework/comm/activity_scope.h"
#include "framework/comm/disagreement.h"
#include "framework/ir/text.h"

namespace skiff {
namespace {

std::string VariableText(const PlanValue& value, bool has_own_dims) {
  std::string text = StrCat(value.name, " ", value.meta.dtype);
  if (has_own_dims) return text;
  const std::span<const int64_t> dims = value.meta.shape.dims();
  text += " [";
  if (!dims.empty()) text += "rows";
  for (size_t i = 1; i < dims.size(); ++i) text += StrCat(", ", dims[i]);
  return text + "]";
}

std::string ValuesText(const Plan& plan, const std::vector<ValueId>& values, bool has_own_dims) {
  std::vector<std::string> texts;
  for (const ValueId value : values) {
    texts.push_back(value ? VariableText(plan[value], has_own_dims) : "none");
  }
  return Join(texts, ", ");
}

std::string InstructionText(const Plan& plan, const Instruction& instruction) {
  // Only what the definition lists: marks such as the name scope change nothing.
  AttributeMap attrs;
  for (const AttrDef& attr : instruction.def->attrs) {
    const Attribute* value = EffectiveAttr(*instruction.op, attr);
    if (value != nullptr) attrs.emplace(attr.name, *value);
  }
  const bool has_own_dims = WorksOnBatch(*instruction.def);
  return StrCat(ValuesText(plan, instruction.outputs, has_own_dims), " = ", instruction.op->type,
                "(", ValuesText(plan, instruction.inputs, has_own_dims), ") ",
                PrintAttributes(attrs));
}

}  // namespace

std::vector<std::string> CollectiveOrder(const Plan& plan) {
  std::vector<std::string> lines;
  for (const Instruction& instruction : plan.instructions) {
    if (IsCollective(instruction)) lines.push_back(InstructionText(plan, instruction));
  }
  return lines;
}

void CollectiveAgreement::Check(const std::vector<std::string>& order) {
  const std::string text = Join(order, "\n");
  if (agreed_.contains(text)) return;
  const std::string activity = "the comparison of collective ops";
  const ActivityScope scope(&communicator_, &activity);
  const std::optional<Disagreement> found = FindDisagreement(&communicator_, text);
  if (found) {
    const LineDifference first = FirstDifferentLine(found->text, found->of_first);
    Throw(ErrorCode::kFailedPrecondition, "ranks would run different collective ops: number ",
          first.line, " is ", first.expected, " on rank 0, and ", first.found, " on ", found->rank);
  }
  agreed_.insert(text);
}

}  // namespace skiff
