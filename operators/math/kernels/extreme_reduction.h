// The ops reduce_max and reduce_min.
#pragma once

#include "framework/op/registry.h"
#include "operators/math/kernels/reduction.h"

namespace skiff {

// Adds an op that reduces to the largest (is_max) or the smallest elements, the gradient op, and
// the CPU kernels of both. `def` is a ReductionDef. A reduction of no elements is an Error, when
// the kernel is prepared or run.
void AddExtremeReduction(OpRegistry& registry, bool is_max, OpDef def);

}  // namespace skiff
