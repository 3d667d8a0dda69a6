// Uses are collected from the op itself, then from all blocks that it runs, in a fixed order. Names
// are resolved in the block of the op that has them, and the variable found counts if the op's own
// block can see it: what a sub-block declares begins and ends with its run.
#include "framework/analysis/op_uses.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "framework/analysis/nested_blocks.h"
#include "framework/analysis/running_state.h"
#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/op/block_rule.h"

namespace skiff {
namespace {

// Variables of other kinds collect: an op that writes to an array doesn't replace what the array
// holds.
bool IsReplacedByAWrite(const Var& var) {
  return var.kind == VarKind::kLoDTensor || var.kind == VarKind::kSelectedRows ||
         var.kind == VarKind::kLoDRankTable;
}

class UseCollection {
 public:
  UseCollection(const OpRegistry& registry, const Block& block, size_t position)
      : registry_(registry),
        outer_(block),
        runs_blocks_(!block.ops()[position]->SubBlocks().empty()) {
    // The op's own arguments come first: it reads them before its sub-blocks run.
    AddOp(block, position, outer_);
    inner_ = BlocksRunBy(block, position);
    for (const Block* inner : inner_) {
      VisibleVars visible(*inner);
      for (size_t i = 0; i < inner->ops().size(); ++i) AddOp(*inner, i, visible);
    }
  }

  OpUses Take() { return std::move(uses_); }

 private:
  void AddOp(const Block& block, size_t position, VisibleVars& visible) {
    const Op& op = *block.ops()[position];
    const OpDef* def = registry_.Find(op.type);
    uses_.has_side_effect = uses_.has_side_effect || def == nullptr || def->has_side_effect;
    const auto find = [&](const std::string& argument) {
      const VisibleVar found = visible.Find(argument);
      const bool may_lack = op.type == "feed" || op.type == "fetch";
      SKIFF_ENFORCE(found.var != nullptr || may_lack, kNotFound,
                    DescribeOp(op, block.index(), position), ": argument \"", argument,
                    "\" has no variable");
      return found;
    };
    for (const SlotArguments& slot : op.inputs) {
      const SlotDef* slot_def = def == nullptr ? nullptr : def->FindInput(slot.slot);
      const bool shape_only = slot_def != nullptr && slot_def->shape_only;
      AddArguments(slot, find, [shape_only](VarUse& use) {
        (shape_only ? use.reads_shape : use.reads_data) = true;
      });
    }
    const std::vector<std::string> kept =
        def == nullptr ? std::vector<std::string>() : KeptRunningState(*def, op);
    for (const SlotArguments& slot : op.outputs) {
      const bool holds_scopes =
          def != nullptr && def->block != nullptr && slot.slot == SlotsOf(def->block->kind).scopes;
      AddArguments(slot, find, [&](VarUse& use) {
        if (std::ranges::count(kept, use.var->name) > 0) return;
        // A tensor in place of the scopes stays as it is.
        if (holds_scopes && use.var->kind != VarKind::kStepScopes) return;
        use.writes = true;
        // A sub-block may run zero times; then the old value remains.
        use.replaces = !runs_blocks_ && IsReplacedByAWrite(*use.var);
      });
    }
  }

  template <typename Find, typename Mark>
  void AddArguments(const SlotArguments& slot, const Find& find, const Mark& mark) {
    for (const std::string& argument : slot.arguments) {
      if (argument == kEmptyVarName) continue;
      const VisibleVar found = find(argument);
      if (found.var != nullptr && IsKnownOutside(found)) mark(UseOf(found));
    }
  }

  bool IsKnownOutside(const VisibleVar& found) {
    if (found.var->persistable) return true;
    // What a sub-block declares begins and ends with each of its runs.
    return outer_.Sees(*found.block) && std::ranges::find(inner_, found.block) == inner_.end();
  }

  VarUse& UseOf(const VisibleVar& found) {
    const auto [it, is_new] = positions_.emplace(found.var, uses_.vars.size());
    if (is_new) uses_.vars.push_back({.var = found.var, .block = found.block});
    return uses_.vars[it->second];
  }

  const OpRegistry& registry_;
  VisibleVars outer_;
  const bool runs_blocks_;
  std::vector<const Block*> inner_;
  OpUses uses_;
  std::unordered_map<const Var*, size_t> positions_;  // in uses_.vars
};

}  // namespace

OpUses UsesOf(const OpRegistry& registry, const Block& block, size_t position) {
  return UseCollection(registry, block, position).Take();
}

}  // namespace skiff
