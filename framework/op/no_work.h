// Which ops have nothing to do: the one rule for tensors without elements.
#pragma once

#include "framework/op/op_context.h"

namespace skiff {

// Returns whether the op has nothing to do: all its outputs are known to have no elements. Returns
// false all the same if
// - the op has no outputs: then the kernel reports that the output is missing;
// - an output is an array of tensors;
// - it has a side effect (OpDef::has_side_effect), is collective or runs a block of ops;
// - it checks the data of an input (SlotDef::checks_data) that has elements: bad data must be an
//   Error even then.
// The shapes of the outputs must be those that InferOutputs has set.
//
// OpRegistry::AddKernel applies this to every kernel: for an op that has nothing to do it prepares
// a kernel that does nothing. So a kernel of an operator meets tensors without elements in two
// cases only: another output of its op has elements (the sum of no rows is 0), or its op checks
// data.
bool HasNoWork(const OpContext& context);

}  // namespace skiff
