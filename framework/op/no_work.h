// No elements, no work: the one place that decides for which ops no kernel is prepared and none
// runs.
#pragma once

#include "framework/op/op_context.h"

namespace skiff {

// Returns whether running the op would change nothing: it has outputs, all known to be empty; no
// input holds data that it may refuse; and it has neither a side effect nor a sub-block. The shape
// rule must have run.
//
// OpRegistry::AddKernel wraps every factory with this check. So the only kernels that ever receive
// empty tensors are those of ops that have another output with elements (the sum of nothing is 0)
// and those of ops that check data.
bool HasNoWork(const OpContext& context);

}  // namespace skiff
