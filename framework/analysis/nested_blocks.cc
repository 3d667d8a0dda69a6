// Programs come from files, so nesting may be anything: blocks that run themselves, chains of
// parents or forward blocks that lead back, thousands of levels. Every walk here visits a block
// once and limits its depth.
#include "framework/analysis/nested_blocks.h"

#include <algorithm>

#include "framework/base/error.h"
#include "framework/op/op_def.h"

namespace skiff {
namespace {

// More than any program needs, and few enough for recursion.
constexpr size_t kMaxDepth = 64;

class SubBlockWalk {
 public:
  explicit SubBlockWalk(const Program& program) : program_(program) {}

  void VisitOp(const Block& block, size_t position) {
    const Op& op = *block.ops()[position];
    for (int32_t index : op.SubBlocks()) {
      const std::string reason = WhyNotNested(program_, path_, index);
      SKIFF_ENFORCE(reason.empty(), kInvalidArgument, DescribeOp(op, block.index(), position), ": ",
                    reason);
      // Each block is visited once, since the number of ways to a block may be exponential.
      if (visited_.insert(index).second) VisitOps(*program_.block(index));
    }
  }

  void Enter(const Block& block) { path_.push_back(block.index()); }

  const std::vector<const Block*>& found() const { return found_; }

 private:
  void VisitOps(const Block& block) {
    found_.push_back(&block);
    Enter(block);
    for (size_t i = 0; i < block.ops().size(); ++i) VisitOp(block, i);
    path_.pop_back();
  }

  const Program& program_;
  std::vector<int32_t> path_;
  std::unordered_set<int32_t> visited_;
  std::vector<const Block*> found_;
};

// Returns the persistable of this name in the first block that declares one.
VisibleVar FirstPersistable(const Program& program, std::string_view name) {
  for (size_t i = 0; i < program.block_count(); ++i) {
    const Block* block = program.block(static_cast<int32_t>(i));
    const Var* var = block->FindLocalVar(name);
    if (var != nullptr && var->persistable) return {var, block};
  }
  return {};
}

}  // namespace

const Block* ForwardBlock(const Block& block) {
  const int32_t index = block.forward_block_index;
  const bool exists = index >= 0 && static_cast<size_t>(index) < block.program()->block_count();
  return exists ? block.program()->block(index) : nullptr;
}

// Breadth-first: blocks_ is both the queue and the order of the search. found_ makes it end for
// damaged programs, too, whose blocks may be their own ancestors.
void VisibleVars::Add(const Block* block) {
  if (block != nullptr && found_.insert(block).second) blocks_.push_back(block);
}

const Block* VisibleVars::Nearest(size_t i) {
  while (i >= blocks_.size() && expanded_ < blocks_.size()) {
    const Block* block = blocks_[expanded_++];
    Add(ForwardBlock(*block));
    Add(block->parent());
  }
  return i < blocks_.size() ? blocks_[i] : nullptr;
}

VisibleVar VisibleVars::Find(std::string_view name) {
  for (size_t i = 0; const Block* block = Nearest(i); ++i) {
    const Var* var = block->FindLocalVar(name);
    if (var == nullptr) continue;
    // The scope knows persistables by name, so all declarations mean one variable.
    return var->persistable ? FirstPersistable(*block->program(), name) : VisibleVar{var, block};
  }
  return {};
}

bool VisibleVars::Sees(const Block& other) {
  for (size_t i = blocks_.size(); !found_.contains(&other) && Nearest(i) != nullptr; ++i) {
  }
  return found_.contains(&other);
}

std::string WhyNotNested(const Program& program, const std::vector<int32_t>& path, int32_t index) {
  if (index < 0 || static_cast<size_t>(index) >= program.block_count()) {
    return StrCat("sub-block ", index, " is outside [0, ", program.block_count() - 1, "]");
  }
  if (std::ranges::find(path, index) != path.end()) {
    return StrCat("sub-block ", index, " contains the op itself");
  }
  if (path.size() >= kMaxDepth) {
    return StrCat("sub-block ", index, " is nested deeper than ", kMaxDepth, " blocks");
  }
  return {};
}

bool IsCounter(const Block& block, std::string_view name) {
  const auto has = [&](const std::vector<std::string>& names) {
    return std::ranges::find(names, name) != names.end();
  };
  return std::ranges::any_of(block.ops(), [&](const auto& op) {
    return op->SubBlocks().empty() && has(op->InputNames()) && has(op->OutputNames());
  });
}

std::vector<const Block*> BlocksRunBy(const Block& block, size_t position) {
  SubBlockWalk walk(*block.program());
  walk.Enter(block);
  walk.VisitOp(block, position);
  return walk.found();
}

}  // namespace skiff
