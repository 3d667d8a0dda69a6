// One pass in program order. For each variable it remembers after which op it was last written and
// last touched, in terms of the new order. An optimizer op may then go right after the latest of
// the ops that it conflicts with: writers of what it reads, and all users of what it writes.
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

PassReport EarlyUpdatePass::Apply(const ProgramPassContext& context, Program* program) const {
  Block* block = program->root();
  const auto& ops = block->ops();
  // An op keeps its index as its key. A moved op takes the key of the op that it follows, and the
  // stable sort keeps the program's order among equal keys.
  std::vector<int64_t> keys(ops.size());
  std::unordered_map<const Var*, LastUse> last_uses;
  int64_t barrier = -1;
  int64_t moved = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    const OpUses uses = UsesOf(context.registry, *block, i);
    int64_t key = static_cast<int64_t>(i);
    // Only optimizer ops move. Moving others could make their results live longer.
    if (!uses.has_side_effect && (ops[i]->role() & kRoleOptimize) != 0) {
      int64_t earliest = barrier;
      for (const VarUse& use : uses.vars) {
        const LastUse& last = last_uses[use.var];
        earliest = std::max(earliest, use.writes ? last.touched : last.written);
      }
      // An op that already follows the op that it waits for stays, and isn't counted.
      if (earliest < key - 1) {
        key = earliest;
        ++moved;
      }
    }
    keys[i] = key;
    if (uses.has_side_effect) barrier = key;
    for (const VarUse& use : uses.vars) {
      LastUse& last = last_uses[use.var];
      // The maximum, since a moved op has a smaller key than ops before it in the program.
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
          .summary = StrCat(moved, " updates moved right after their gradients")};
}

}  // namespace skiff
