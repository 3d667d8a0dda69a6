// arg_min: the place of the smallest element along an axis, or among all elements.
// Source: Fluid's arg_min. NaN counts as the smallest.
#include "operators/math/kernels/arg_extreme.h"

namespace skiff {

void RegisterArgMin(OpRegistry& registry) {
  RegisterArgExtreme(registry, "arg_min", /*is_max=*/false);
}

}  // namespace skiff
