// What an op of a program does to variables, whichever of them its sub-blocks touch.
//
// Variables, not names: a sub-block may declare one of a name that means another outside.
#pragma once

#include <cstddef>
#include <vector>

#include "framework/ir/program.h"
#include "framework/op/registry.h"

namespace skiff {

struct VarUse {
  const Var* var = nullptr;
  const Block* block = nullptr;  // that declares it
  bool reads_data = false;
  bool reads_shape = false;  // by an input that is SlotDef::shape_only
  bool writes = false;
  // Of a write: whether nothing of what was there before can be left. Not if a sub-block may have
  // been run zero times, nor of a variable that a write adds to, like an array.
  bool replaces = false;
};

struct OpUses {
  // Each variable once, in the order in which inputs, outputs and sub-blocks name them.
  std::vector<VarUse> vars;
  // Of the op or of one in its sub-blocks. Ops that the registry lacks may have any.
  bool has_side_effect = false;
};

// The uses that can be told from the block in which the op stands: its own arguments, and what its
// sub-blocks (and theirs) use of variables that the block sees and of persistables. What a
// sub-block declares begins and ends with each run of it. Ops that the registry lacks read the data
// of their inputs.
//
// An op that only hands an input on to its sub-block may declare the slot shape_only: whether the
// data is read is then up to the sub-block.
//
// Error for an argument without a variable (but for `feed` and `fetch`, which the executor runs
// itself), and as of BlocksRunBy.
OpUses UsesOf(const OpRegistry& registry, const Block& block, size_t position);

}  // namespace skiff
