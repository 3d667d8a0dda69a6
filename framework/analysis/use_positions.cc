#include "framework/analysis/use_positions.h"

#include <algorithm>

#include "framework/analysis/op_uses.h"

namespace skiff {
namespace {

size_t FirstAfter(const std::vector<size_t>& positions, size_t i) {
  const auto next = std::ranges::upper_bound(positions, i);
  return next == positions.end() ? UsePositions::kNever : *next;
}

}  // namespace

UsePositions::UsePositions(const OpRegistry& registry, const Block& block)
    : registry_(registry), block_(block) {
  for (size_t i = 0; i < block.ops().size(); ++i) {
    const OpUses uses = UsesOf(registry, block, i);
    if (uses.has_side_effect) side_effects_.push_back(i);
    for (const VarUse& use : uses.vars) {
      Positions& positions = of_var_[use.var];
      positions.touched.push_back(i);
      if (use.writes) positions.written.push_back(i);
    }
  }
}

size_t UsePositions::FirstConflict(size_t i) const {
  size_t conflict = FirstAfter(side_effects_, i);
  for (const VarUse& use : UsesOf(registry_, block_, i).vars) {
    const Positions& positions = of_var_.at(use.var);
    conflict =
        std::min(conflict, FirstAfter(use.writes ? positions.touched : positions.written, i));
  }
  return conflict;
}

}  // namespace skiff
