#include "framework/transpiler/early_update_pass.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "framework/analysis/op_uses.h"
#include "framework/base/error.h"
#include "framework/ir/op_role.h"

namespace skiff {
namespace {

// Where among the ops placed so far a variable was last written and last touched.
struct LastUse {
  int64_t written = -1;
  int64_t touched = -1;
};

}  // namespace

PassReport EarlyUpdatePass::Apply(const OpRegistry& registry, Program* program) const {
  Block* block = program->root();
  const auto& ops = block->ops();
  // An op keeps its index as key; a moved one takes the key of the op it goes behind, and ties keep
  // the order of the program.
  std::vector<int64_t> keys(ops.size());
  std::unordered_map<const Var*, LastUse> last_uses;
  int64_t barrier = -1;
  int64_t moved = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    const OpUses uses = UsesOf(registry, *block, i);
    int64_t key = static_cast<int64_t>(i);
    if (!uses.has_side_effect && (ops[i]->role() & kRoleOptimize) != 0) {
      int64_t earliest = barrier;
      for (const VarUse& use : uses.vars) {
        const LastUse& last = last_uses[use.var];
        earliest = std::max(earliest, use.writes ? last.touched : last.written);
      }
      if (earliest < key - 1) {
        key = earliest;
        ++moved;
      }
    }
    keys[i] = key;
    if (uses.has_side_effect) barrier = key;
    for (const VarUse& use : uses.vars) {
      LastUse& last = last_uses[use.var];
      last.touched = std::max(last.touched, key);
      if (use.writes) last.written = std::max(last.written, key);
    }
  }
  std::vector<size_t> order(ops.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return keys[a] < keys[b]; });
  block->ReorderOps(order);
  return {.pass = {},
          .changes = moved,
          .summary = StrCat(moved, " updates moved behind their gradients")};
}

}  // namespace skiff
