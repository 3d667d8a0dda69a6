#include "framework/transpiler/early_update_pass.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "framework/base/error.h"
#include "framework/ir/op_role.h"

namespace skiff {
namespace {

// For each name, where among the ops placed so far it was last written and last touched.
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
  std::unordered_map<std::string, LastUse> uses;
  int64_t barrier = -1;
  int64_t moved = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    const Op& op = *ops[i];
    const OpDef* def = registry.Find(op.type);
    const bool fixed = def == nullptr || def->has_side_effect || !op.SubBlocks().empty();
    int64_t key = static_cast<int64_t>(i);
    if (!fixed && (op.role() & kRoleOptimize) != 0) {
      int64_t earliest = barrier;
      for (const std::string& name : op.InputNames())
        earliest = std::max(earliest, uses[name].written);
      for (const std::string& name : op.OutputNames()) {
        earliest = std::max(earliest, uses[name].touched);
      }
      if (earliest < key - 1) {
        key = earliest;
        ++moved;
      }
    }
    keys[i] = key;
    if (fixed) barrier = key;
    for (const std::string& name : op.InputNames()) {
      uses[name].touched = std::max(uses[name].touched, key);
    }
    for (const std::string& name : op.OutputNames()) {
      LastUse& use = uses[name];
      use.written = std::max(use.written, key);
      use.touched = std::max(use.touched, key);
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
