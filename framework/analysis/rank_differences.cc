// One pass over the root block: a variable differs from the op that makes it so to the op that
// replaces it. An op with sub-blocks counts as one op that reads and writes all that they do, and
// draws random numbers if an op in them does.
#include "framework/analysis/rank_differences.h"

#include <algorithm>
#include <unordered_set>

#include "framework/analysis/nested_blocks.h"
#include "framework/analysis/op_uses.h"
#include "framework/base/error.h"

namespace skiff {
namespace {

class DifferenceCheck {
 public:
  DifferenceCheck(const OpRegistry& registry, const Block& root)
      : registry_(registry), root_(root) {}

  void Run() {
    for (size_t i = 0; i < root_.ops().size(); ++i) Follow(i);
  }

 private:
  void Follow(size_t position) {
    const Op& op = *root_.ops()[position];
    const OpDef* def = registry_.Find(op.type);
    const OpUses uses = UsesOf(registry_, root_, position);
    const Var* reason = nullptr;
    for (const VarUse& use : uses.vars) {
      if (use.reads_data && Differs(*use.var)) reason = use.var;
    }
    const bool differs = reason != nullptr || IsRandom(position);
    const bool accumulates = def != nullptr && def->accumulation.has_value();
    for (const VarUse& use : uses.vars) {
      if (!use.writes) continue;
      written_.insert(use.var);
      if (!differs || (def != nullptr && GivesAllRanksTheSame(*def, op, use.var->name))) {
        if (use.replaces) differing_.erase(use.var);
        continue;
      }
      SKIFF_ENFORCE(!use.var->persistable || accumulates || IsScopes(*use.var), kUnimplemented,
                    DescribeOp(op, root_.index(), position), ": \"", use.var->name,
                    "\" would differ between ranks, since the op computes it from ",
                    reason == nullptr ? "random numbers of the rank"
                                      : StrCat("\"", reason->name, "\", data of the rank"),
                    ": expected persistables that only sums over all ranks change");
      differing_.insert(use.var);
    }
  }

  // What nobody has written comes from the scope, where it is the same, or is fed.
  bool Differs(const Var& var) const {
    if (differing_.contains(&var)) return true;
    return !written_.contains(&var) && !var.persistable;
  }

  static bool IsScopes(const Var& var) { return var.kind == VarKind::kStepScopes; }

  bool IsRandom(size_t position) const {
    const auto is_random = [&](const Op& op) {
      const OpDef* def = registry_.Find(op.type);
      return def != nullptr && def->random;
    };
    if (is_random(*root_.ops()[position])) return true;
    return std::ranges::any_of(BlocksRunBy(root_, position), [&](const Block* block) {
      return std::ranges::any_of(block->ops(), [&](const auto& op) { return is_random(*op); });
    });
  }

  const OpRegistry& registry_;
  const Block& root_;
  std::unordered_set<const Var*> written_;
  std::unordered_set<const Var*> differing_;
};

}  // namespace

bool IsCollectiveIdentity(const OpDef& def) { return def.collective && !def.views.empty(); }

bool GivesAllRanksTheSame(const OpDef& def, const Op& op, std::string_view variable) {
  if (!def.collective || IsCollectiveIdentity(def)) return false;
  return std::ranges::none_of(def.own_outputs, [&](const StaticText& slot) {
    return std::ranges::count(op.Output(slot), variable) > 0;
  });
}

bool WorksOnBatch(const OpDef& def) { return def.collective && !def.layout_slots.empty(); }

void CheckSameOnAllRanks(const OpRegistry& registry, const Program& program) {
  DifferenceCheck(registry, *program.root()).Run();
}

}  // namespace skiff
