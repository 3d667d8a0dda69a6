// The variables that an op of a program uses, including uses in sub-blocks.
//
// The result names variables, not names: a sub-block may declare a name that means another variable
// outside.
#pragma once

#include <cstddef>
#include <vector>

#include "framework/ir/program.h"
#include "framework/op/registry.h"

namespace skiff {

struct VarUse {
  const Var* var = nullptr;
  const Block* block = nullptr;  // the block that declares it
  bool reads_data = false;
  bool reads_shape = false;  // through an input that is SlotDef::shape_only
  bool writes = false;
  // For a write: whether nothing of the old value can remain. False if a sub-block may have run
  // zero times, and for a variable that a write adds to, such as an array.
  bool replaces = false;
};

struct OpUses {
  // Each variable once, in the order in which inputs, outputs and sub-blocks name them.
  std::vector<VarUse> vars;
  // Whether the op or an op in a sub-block has a side effect. Ops that the registry lacks may have
  // any.
  bool has_side_effect = false;
};

// Returns the variables that the op uses and that outlive a run of its sub-blocks: the op's
// arguments, and the variables used by sub-blocks at any depth if the op's block sees the variable
// or the variable is persistable. Ops that the registry lacks read the data of their inputs.
//
// An op that only passes an input on to its sub-block may declare the slot shape_only; whether its
// data is read then depends on the sub-block.
//
// Throws Error for an argument without a variable (except for `feed` and `fetch`, which the
// executor runs itself), and what BlocksRunBy throws.
OpUses UsesOf(const OpRegistry& registry, const Block& block, size_t position);

}  // namespace skiff
