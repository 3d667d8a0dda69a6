// arg_max: the place of the largest element along an axis, or among all elements.
// Source: Fluid's arg_max. NaN counts as the largest.
#include "operators/math/kernels/arg_extreme.h"

namespace skiff {

void RegisterArgMax(OpRegistry& registry) {
  RegisterArgExtreme(registry, "arg_max", /*is_max=*/true);
}

}  // namespace skiff
