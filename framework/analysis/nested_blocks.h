// How the blocks of a program lie in each other: which variables one sees, which ones an op runs.
//
// A block sees its own variables and those of its ancestors. A gradient block also sees those of
// its forward block, which has run before and leaves them behind. Its own come first, then those of
// the forward block, then the parent's, then what these two see.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "framework/ir/program.h"

namespace skiff {

// The block whose gradient a block is; nullptr if there is none.
const Block* ForwardBlock(const Block& block);

struct VisibleVar {
  const Var* var = nullptr;      // nullptr: there is none
  const Block* block = nullptr;  // that declares it
};

// Of a program that outlives it and doesn't change meanwhile. Looks no further than it is asked to.
class VisibleVars {
 public:
  explicit VisibleVars(const Block& block) { Add(&block); }

  // The variable that the name means in the block. A persistable lives in the scope, which knows
  // it by its name: wherever it is declared, it is the one of the first block that declares it.
  VisibleVar Find(std::string_view name);
  // Whether the block sees variables of that other one (or is it).
  bool Sees(const Block& other);

 private:
  void Add(const Block* block);
  // nullptr behind the last.
  const Block* Nearest(size_t i);

  std::vector<const Block*> blocks_;  // found so far, the nearest first
  std::unordered_set<const Block*> found_;
  size_t expanded_ = 0;  // of blocks_: what these see is found
};

// Why an op of the last block of `path`, indices of blocks from the outermost to the one that the
// op stands in, can't run the block `index`: there is none, it is one of the path, or the path is
// too long for another. Empty: it can.
std::string WhyNotNested(const Program& program, const std::vector<int32_t>& path, int32_t index);

// The sub-blocks of the op at a position of the block, and theirs, to any depth: each once, outer
// ones before inner ones. Error (kInvalidArgument) naming the op for one that can't be run.
std::vector<const Block*> BlocksRunBy(const Block& block, size_t position);

}  // namespace skiff
