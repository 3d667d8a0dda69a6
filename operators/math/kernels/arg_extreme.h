// arg_max and arg_min: the index of the largest or smallest element along an axis.
#pragma once

#include "framework/op/registry.h"

namespace skiff {

// Registers arg_max or arg_min. Of equal elements the first one counts. NaN counts as the largest
// for arg_max and as the smallest for arg_min.
void RegisterArgExtreme(OpRegistry& registry, StaticText type, bool is_max);

}  // namespace skiff
