// Ops are grouped by everything that must be equal (Kind, as text). A group remembers the first
// later op that one of its members mustn't cross (limit). An op joins the newest group of its kind
// as long as it comes before that limit, since then all members may move to its position; otherwise
// it begins another group. One pass over the ops suffices.
#include "framework/transpiler/merge_optimizer_pass.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "framework/analysis/use_positions.h"
#include "framework/base/dtype.h"
#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/ir/text.h"
#include "framework/transpiler/name_list.h"

namespace skiff {
namespace {

constexpr size_t kNever = UsePositions::kNever;

// What ops must have in common to be merged, as text by name: a slot, an attribute, "dtype".
using Kind = std::map<std::string, std::string>;

// Returns the names of what the second kind has otherwise.
std::vector<std::string> Differences(const Kind& kind, const Kind& other) {
  std::vector<std::string> names;
  for (const auto& [name, text] : kind) {
    const auto found = other.find(name);
    if (found == other.end() || found->second != text) names.push_back(name);
  }
  return names;
}

struct Group {
  const Kind* kind = nullptr;
  std::vector<size_t> members;
  size_t limit = kNever;  // the first op that one of the members mustn't cross
};

class Merging {
 public:
  Merging(const OpRegistry& registry, Block* block)
      : registry_(registry), block_(*block), positions_(registry, *block) {}

  PassReport Run() {
    FindGroups();
    FindLargest();
    std::map<size_t, Op> merged;  // by position
    std::vector<bool> is_gone(block_.ops().size(), false);
    for (const Group& group : groups_) {
      if (group.members.size() < 2) {
        LeaveAlone(group.members.front(), WhyAlone(group));
        continue;
      }
      merged.emplace(group.members.back(), MergedOp(group));
      for (const size_t member : group.members) is_gone[member] = true;
      changes_ += static_cast<int64_t>(group.members.size());
    }
    Replace(std::move(merged), is_gone);
    return {.pass = {}, .changes = changes_, .summary = Summary()};
  }

 private:
  const OpDef& DefOf(size_t i) const { return registry_.Get(block_.ops()[i]->type); }

  // Returns the definition of the op that ops of this definition are merged into.
  const OpDef& MergedDef(const OpDef& def) const {
    return def.update->merged_as.empty() ? def : registry_.Get(def.update->merged_as);
  }

  void FindGroups() {
    for (size_t i = 0; i < block_.ops().size(); ++i) {
      const Op& op = *block_.ops()[i];
      const OpDef* def = registry_.Find(op.type);
      // Sums over the ranks are in lists already, one for each bucket.
      if (def == nullptr || !def->update.has_value() || def->collective) continue;
      const std::string several = SlotOfSeveral(op, *def);
      if (HasSparseGradient(op)) {
        LeaveAlone(i, "sparse gradient");
      } else if (!several.empty()) {
        LeaveAlone(i, several + " of several");
      } else {
        AddToGroup(KindOf(op, *def), i);
      }
    }
  }

  bool HasSparseGradient(const Op& op) const {
    return std::ranges::any_of(op.Input("Grad"), [this](const std::string& name) {
      const Var* var = block_.FindVar(name);
      return var != nullptr && var->kind == VarKind::kSelectedRows;
    });
  }

  // Returns a slot with several arguments for which the merged op has only one, or "".
  static std::string SlotOfSeveral(const Op& op, const OpDef& def) {
    for (const SlotDef& slot : def.inputs) {
      if (!IsOneOf(slot.name, def.update->lists) && op.Input(slot.name).size() > 1)
        return slot.name;
    }
    return {};
  }

  Kind KindOf(const Op& op, const OpDef& def) const {
    const UpdateRule& rule = *def.update;
    const std::vector<StaticText>& list_attrs = MergedDef(def).update->list_attrs;
    Kind kind = {{"type", op.type}, {kOpRoleAttr, StrCat(op.role())}};
    for (const AttrDef& attr : def.attrs) {
      const Attribute* value = EffectiveAttr(op, attr);
      const bool is_list = IsOneOf(attr.name, list_attrs);
      if (value != nullptr && !is_list) kind[attr.name] = PrintAttribute(*value);
    }
    // For a list, only whether the op has it: argument i of each list belongs to parameter i, so
    // either all members have it or none.
    for (const SlotDef& slot : def.inputs) {
      const std::vector<std::string>& arguments = op.Input(slot.name);
      const bool is_list = IsOneOf(slot.name, rule.lists);
      kind[slot.name] = !is_list ? Join(arguments, ", ") : arguments.empty() ? "none" : "some";
    }
    for (const SlotDef& slot : def.outputs) {
      kind[slot.name] = op.Output(slot.name).empty() ? "none" : "some";
    }
    for (const StaticText slot : rule.lists) {
      if (op.Input(slot).empty()) continue;
      kind["dtype"] += StrCat(slot, " ", DTypeName(block_.GetVar(op.Input(slot)[0])->dtype), " ");
    }
    return kind;
  }

  void AddToGroup(Kind kind, size_t i) {
    const size_t limit = positions_.FirstConflict(i);
    const auto [found, is_new] = newest_.emplace(std::move(kind), groups_.size());
    if (!is_new) {
      Group& group = groups_[found->second];
      // Otherwise a member of the group can't move here, and the group is finished.
      if (group.limit > i) {
        group.members.push_back(i);
        group.limit = std::min(group.limit, limit);
        return;
      }
      found->second = groups_.size();
    }
    groups_.push_back({.kind = &found->first, .members = {i}, .limit = limit});
  }

  void FindLargest() {
    for (const Group& group : groups_) {
      auto& [largest, second] = largest_[group.kind->at("type")];
      const auto is_larger = [&](const Group* than) {
        return than == nullptr || group.members.size() > than->members.size();
      };
      if (is_larger(largest)) {
        second = std::exchange(largest, &group);
      } else if (is_larger(second)) {
        second = &group;
      }
    }
  }

  // Returns why the only member of a group isn't in the largest other group of its type.
  std::string WhyAlone(const Group& group) const {
    const std::string& type = group.kind->at("type");
    const auto& [largest, second] = largest_.at(type);
    const Group* other = largest == &group ? second : largest;
    if (other == nullptr) return "no other " + type;
    const std::vector<std::string> names = Differences(*group.kind, *other->kind);
    return names.empty() ? "an op in between uses its variables" : "another " + Join(names, ", ");
  }

  void LeaveAlone(size_t i, const std::string& reason) {
    alone_[reason].push_back(block_.ops()[i]->Input(DefOf(i).update->lists.front()).at(0));
  }

  Op MergedOp(const Group& group) const {
    const Op& last = *block_.ops()[group.members.back()];
    const OpDef& def = MergedDef(registry_.Get(last.type));
    Op merged = last;
    merged.type = def.type;
    // Drops attributes that the merged op lacks, such as adam's lazy_mode.
    std::erase_if(merged.attrs, [&def, &own = registry_.Get(last.type)](const auto& attr) {
      return own.FindAttr(attr.first) != nullptr && def.FindAttr(attr.first) == nullptr;
    });
    for (const StaticText slot : def.update->lists) {
      std::vector<std::string> arguments = Joined(group, slot, &Op::Input);
      if (!arguments.empty()) merged.SetInput(slot, std::move(arguments));
    }
    for (const SlotDef& slot : def.outputs) {
      std::vector<std::string> arguments = Joined(group, slot.name, &Op::Output);
      if (!arguments.empty()) merged.SetOutput(slot.name, std::move(arguments));
    }
    for (const StaticText attr : def.update->list_attrs) {
      merged.SetAttr(attr, JoinedAttr(group, attr));
    }
    // Fluid's op_role_var: pairs of a parameter and its gradient, one after the other.
    std::vector<std::string> role_vars;
    for (const size_t member : group.members) {
      const auto names = block_.ops()[member]->Attr<std::vector<std::string>>(kOpRoleVarAttr, {});
      role_vars.insert(role_vars.end(), names.begin(), names.end());
    }
    if (!role_vars.empty()) merged.SetAttr(kOpRoleVarAttr, role_vars);
    return merged;
  }

  std::vector<std::string> Joined(
      const Group& group, std::string_view slot,
      const std::vector<std::string>& (Op::*arguments_of)(std::string_view) const) const {
    std::vector<std::string> joined;
    for (const size_t member : group.members) {
      const std::vector<std::string>& arguments = (*block_.ops()[member].*arguments_of)(slot);
      joined.insert(joined.end(), arguments.begin(), arguments.end());
    }
    return joined;
  }

  // One entry a parameter.
  Attribute JoinedAttr(const Group& group, std::string_view name) const {
    std::vector<float> numbers;
    std::vector<std::string> texts;
    for (const size_t member : group.members) {
      const Op& op = *block_.ops()[member];
      const Attribute& value = *EffectiveAttr(op, *DefOf(member).FindAttr(name));
      const size_t parameters = op.Input(DefOf(member).update->lists.front()).size();
      if (const auto* number = std::get_if<float>(&value)) {
        numbers.insert(numbers.end(), parameters, *number);
      } else if (const auto* text = std::get_if<std::string>(&value)) {
        texts.insert(texts.end(), parameters, *text);
      } else if (const auto* own = std::get_if<std::vector<float>>(&value)) {
        AppendEntries(op, name, *own, parameters, &numbers);
      } else {
        AppendEntries(op, name, std::get<std::vector<std::string>>(value), parameters, &texts);
      }
    }
    if (texts.empty()) return numbers;
    return texts;
  }

  template <typename T>
  static void AppendEntries(const Op& op, std::string_view name, const std::vector<T>& own,
                            size_t count, std::vector<T>* joined) {
    // Shape rules check this as well, but they run after the passes over a program.
    SKIFF_ENFORCE(own.size() == 1 || own.size() == count, kInvalidArgument, op.type, ": attribute ",
                  name, " has ", own.size(), " entries, expected 1 for all or ", count,
                  " as its list of parameters has");
    for (size_t i = 0; i < count; ++i) joined->push_back(own[own.size() == 1 ? 0 : i]);
  }

  void Replace(std::map<size_t, Op> merged, const std::vector<bool>& is_gone) {
    std::vector<size_t> order;
    for (size_t i = 0; i < is_gone.size(); ++i) {
      const auto found = merged.find(i);
      if (found != merged.end()) {
        *block_.ops()[i] = std::move(found->second);
        order.push_back(i);
      } else if (!is_gone[i]) {
        order.push_back(i);
      }
    }
    block_.ReorderOps(order);
  }

  std::string Summary() const {
    const auto ops =
        std::ranges::count_if(groups_, [](const Group& group) { return group.members.size() > 1; });
    std::vector<std::string> left;
    for (const auto& [reason, names] : alone_) {
      left.push_back(StrCat(FewNames(names), " (", reason, ")"));
    }
    return StrCat(changes_, " updates in ", ops, " ops",
                  left.empty() ? "" : "; left alone: ", Join(left, ", "));
  }

  const OpRegistry& registry_;
  Block& block_;
  UsePositions positions_;
  std::vector<Group> groups_;
  std::map<Kind, size_t> newest_;  // in groups_
  // The two largest groups of each type.
  std::map<std::string, std::pair<const Group*, const Group*>> largest_;
  int64_t changes_ = 0;
  std::map<std::string, std::vector<std::string>> alone_;  // parameters, by what keeps them so
};

}  // namespace

PassReport MergeOptimizerPass::Apply(const ProgramPassContext& context, Program* program) const {
  return Merging(context.registry, program->root()).Run();
}

}  // namespace skiff
