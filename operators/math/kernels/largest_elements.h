// top_k_v2, and top_k, which is limited to the last axis and the largest values.
#pragma once

#include "framework/op/registry.h"

namespace skiff {

// Registers top_k_v2 or top_k, and its gradient op. Equal values keep their order; NaN counts as
// the largest. If K is given, it replaces the attribute k, and the shape of the outputs depends on
// data.
void RegisterTopKOp(OpRegistry& registry, bool is_v2);

}  // namespace skiff
