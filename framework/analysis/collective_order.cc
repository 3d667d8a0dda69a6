#include "framework/analysis/collective_order.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <sstream>

#include "framework/analysis/dependencies.h"
#include "framework/base/error.h"
#include "framework/comm/activity_scope.h"
#include "framework/comm/gather.h"
#include "framework/ir/text.h"

namespace skiff {
namespace {

std::string VariableText(const PlanValue& value) {
  const std::span<const int64_t> dims = value.meta.shape.dims();
  std::string text = StrCat(value.name, " ", value.meta.dtype, " [");
  if (!dims.empty()) text += "rows";
  for (size_t i = 1; i < dims.size(); ++i) text += StrCat(", ", dims[i]);
  return text + "]";
}

std::string ValuesText(const Plan& plan, const std::vector<ValueId>& values) {
  std::vector<std::string> texts;
  for (const ValueId value : values) texts.push_back(value ? VariableText(plan[value]) : "none");
  return Join(texts, ", ");
}

std::string InstructionText(const Plan& plan, const Instruction& instruction) {
  // Only what the definition lists: marks such as the name scope change nothing.
  AttributeMap attrs;
  for (const AttrDef& attr : instruction.def->attrs) {
    const Attribute* value = EffectiveAttr(*instruction.op, attr);
    if (value != nullptr) attrs.emplace(attr.name, *value);
  }
  return StrCat(ValuesText(plan, instruction.outputs), " = ", instruction.op->type, "(",
                ValuesText(plan, instruction.inputs), ") ", PrintAttributes(attrs));
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

[[noreturn]] void ThrowDifference(const std::string& of_first, const std::string& of_other,
                                  size_t other) {
  const std::vector<std::string> lines = LinesOf(of_first);
  const std::vector<std::string> other_lines = LinesOf(of_other);
  const auto [line, other_line] = std::ranges::mismatch(lines, other_lines);
  const auto text = [](const auto& found, const std::vector<std::string>& all) {
    return found == all.end() ? "missing" : StrCat("\"", *found, "\"");
  };
  Throw(ErrorCode::kFailedPrecondition, "ranks would run different collective ops: number ",
        line - lines.begin(), " is ", text(line, lines), " on rank 0, and ",
        text(other_line, other_lines), " on rank ", other);
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
  Compare(text);
  agreed_.insert(text);
}

void CollectiveAgreement::Compare(const std::string& order) {
  const std::vector<uint64_t> hashes =
      GatherNumbers(&communicator_, static_cast<uint64_t>(std::hash<std::string>()(order)));
  const auto found = std::ranges::find_if(hashes, [&](uint64_t of) { return of != hashes[0]; });
  if (found == hashes.end()) return;
  const auto other = static_cast<size_t>(found - hashes.begin());
  // Only the two ranks that are compared send their orders, which may be long.
  const auto rank = static_cast<size_t>(communicator_.world().rank);
  const std::vector<std::string> texts =
      GatherTexts(&communicator_, rank == 0 || rank == other ? order : "");
  ThrowDifference(texts[0], texts[other], other);
}

}  // namespace skiff
