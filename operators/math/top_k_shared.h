// top_k_v2 and top_k, which has the last axis and the largest values only.
#pragma once

#include "framework/op/registry.h"

namespace skiff {

// Registers top_k_v2 (or top_k) and its gradient op. Of equal values the one further to the front
// comes first; NaN counts as the largest. K, where it is given, takes the place of the attribute k,
// and the shape of the outputs depends on data.
void RegisterTopKOp(OpRegistry& registry, bool is_v2);

}  // namespace skiff
