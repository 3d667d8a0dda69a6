// The nesting of a program's blocks: which variables a block sees, and which blocks an op runs.
//
// A block sees its own variables and the variables of its ancestors. A gradient block also sees the
// variables of its forward block, which has run before and keeps its values. The search order is:
// the block's own variables, the forward block's, the parent's, then the variables that the forward
// block and the parent see.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "framework/ir/program.h"

namespace skiff {

// Returns the block of which `block` is the gradient block, or nullptr.
const Block* ForwardBlock(const Block& block);

struct VisibleVar {
  const Var* var = nullptr;      // nullptr: there is none
  const Block* block = nullptr;  // the block that declares it
};

// The variables that a block sees. The program must outlive this object and must not change
// meanwhile. Searches only as far as it needs to.
class VisibleVars {
 public:
  explicit VisibleVars(const Block& block) { Add(&block); }

  // Returns the variable that the name means in the block. A persistable is the same variable
  // wherever it is declared, since the scope has one entry per name: the variable of the first
  // block that declares it.
  VisibleVar Find(std::string_view name);
  // Returns whether the block sees variables of `other` or is `other`.
  bool Sees(const Block& other);

 private:
  void Add(const Block* block);
  // Returns nullptr after the last.
  const Block* Nearest(size_t i);

  std::vector<const Block*> blocks_;  // found so far, the nearest first
  std::unordered_set<const Block*> found_;
  size_t expanded_ = 0;  // how many of blocks_ have added the blocks that they see
};

// Returns why an op in the last block of `path` can't run block `index`, or an empty string if it
// can: the block doesn't exist, is on the path, or the path is too long. `path` lists block indices
// from the outermost block to the op's own.
std::string WhyNotNested(const Program& program, const std::vector<int32_t>& path, int32_t index);

// Returns the sub-blocks of an op and the sub-blocks of those, to any depth: each block once, outer
// blocks before inner blocks. Throws Error (kInvalidArgument), naming the op, if a sub-block can't
// be run.
std::vector<const Block*> BlocksRunBy(const Block& block, size_t position);

// Returns whether an op of the block works on the variable in place, such as `increment` on a
// counter. Ops that run blocks don't count: ask about their blocks.
bool IsCounter(const Block& block, std::string_view name);

}  // namespace skiff
