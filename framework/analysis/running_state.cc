#include "framework/analysis/running_state.h"

#include <algorithm>
#include <variant>

#include "framework/op/declared_types.h"

namespace skiff {
namespace {

// Returns false for a flag that the op doesn't have.
bool IsSet(const OpDef& def, const Op& op, std::string_view flag) {
  const AttrDef* attr = def.FindAttr(flag);
  const Attribute* value = attr == nullptr ? nullptr : EffectiveAttr(op, *attr);
  if (value == nullptr) return false;
  if (const auto* is_set = std::get_if<bool>(value)) return *is_set;
  // In a file of an old version, the flag is a number. A run takes the number as this does.
  Op typed(op.type);
  typed.SetAttr(flag, *value);
  TakeDeclaredTypes(def, &typed);
  const auto* is_set = std::get_if<bool>(&typed.attrs.at(attr->name));
  return is_set != nullptr && *is_set;
}

}  // namespace

// All ops with running statistics have the flags of batch_norm.
bool UpdatesRunningState(const OpDef& def, const Op& op) {
  const bool keeps = IsSet(def, op, "use_global_stats") ||
                     (IsSet(def, op, "is_test") && !IsSet(def, op, "trainable_statistics"));
  return !def.running_state.empty() && !keeps;
}

bool IsRunningState(const OpDef& def, std::string_view output_slot) {
  return std::ranges::any_of(def.running_state,
                             [&](const auto& pair) { return pair.second == output_slot; });
}

std::vector<std::string> KeptRunningState(const OpDef& def, const Op& op) {
  std::vector<std::string> kept;
  if (UpdatesRunningState(def, op)) return kept;
  for (const auto& [input, output] : def.running_state) {
    if (op.Input(input) != op.Output(output)) continue;
    for (const std::string& name : op.Output(output)) kept.push_back(name);
  }
  return kept;
}

}  // namespace skiff
