#include "framework/transpiler/update_groups.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "framework/ir/op_role.h"
#include "framework/op/update_part.h"

namespace skiff {
namespace {

template <typename T>
std::vector<T> Picked(const std::vector<T>& list, const std::vector<size_t>& members) {
  std::vector<T> picked;
  for (const size_t member : members) picked.push_back(list[member]);
  return picked;
}

// Of a list attribute, which has one entry for all of `count` parameters, or one for each.
void PickEntries(std::string_view name, const std::vector<size_t>& members, size_t count, Op* op) {
  const auto found = op->attrs.find(std::string(name));
  if (found == op->attrs.end()) return;
  const auto pick = [&](auto* list) {
    if (list != nullptr && list->size() == count) *list = Picked(*list, members);
  };
  pick(std::get_if<std::vector<float>>(&found->second));
  pick(std::get_if<std::vector<std::string>>(&found->second));
}

// Keeps the pairs of the parameters that the op has.
void PickRoleVars(Op* op) {
  const auto all = op->Attr<std::vector<std::string>>(kOpRoleVarAttr, {});
  if (all.empty()) return;
  std::vector<std::string> picked;
  for (size_t i = 0; i + 1 < all.size(); i += 2) {
    if (std::ranges::count(op->Input("Param"), all[i]) == 0) continue;
    picked.insert(picked.end(), {all[i], all[i + 1]});
  }
  op->SetAttr(kOpRoleVarAttr, std::move(picked));
}

}  // namespace

std::vector<int64_t> CutIntoParts(const std::vector<int64_t>& begins, bool whole, int64_t ranks) {
  std::vector<int64_t> parts;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const int64_t ideal = begins.back() * rank / ranks;
    const auto next = std::ranges::upper_bound(begins, ideal);
    const int64_t begin = *(next - 1);
    if (!whole) {
      parts.push_back(ideal - (ideal - begin) % kPieceAlignment);
    } else {
      const bool is_near_begin = next == begins.end() || ideal - begin <= *next - ideal;
      parts.push_back(is_near_begin ? begin : *next);
    }
  }
  parts.push_back(begins.back());
  return parts;
}

Op UpdateOfSome(const OpDef& def, const Op& update, const std::vector<size_t>& members) {
  const size_t count = update.Input("Param").size();
  Op some = update;
  for (SlotArguments& slot : some.inputs) {
    if (!IsOneOf(slot.slot, def.update->lists) || slot.arguments.empty()) continue;
    slot.arguments = Picked(slot.arguments, members);
  }
  for (SlotArguments& slot : some.outputs) {
    if (!slot.arguments.empty()) slot.arguments = Picked(slot.arguments, members);
  }
  for (const StaticText name : def.update->list_attrs) PickEntries(name, members, count, &some);
  PickRoleVars(&some);
  return some;
}

}  // namespace skiff
