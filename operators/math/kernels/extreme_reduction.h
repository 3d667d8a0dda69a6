// The ops reduce_max and reduce_min.
#pragma once

#include "framework/op/registry.h"
#include "operators/math/kernels/reduction.h"

namespace skiff {

// Adds the op and its gradient op with their CPU kernels. `def` is that of ReductionDef.
void AddExtremeReduction(OpRegistry& registry, bool is_max, OpDef def);

}  // namespace skiff
