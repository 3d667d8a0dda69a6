// reduce_max: Out = the largest element of X over the axes `dim`, or over all of them. NaN counts
// as the largest. Source: Fluid's reduce_max; dX = dOut at every element that equals its Out, 0
// elsewhere. A maximum of no elements is an Error.
#include "operators/math/kernels/extreme_reduction.h"

namespace skiff {

void RegisterReduceMax(OpRegistry& registry) {
  AddExtremeReduction(
      registry, /*is_max=*/true,
      ReductionDef("reduce_max",
                   "Out = the largest element of X over the axes `dim`. Fluid's reduce_max."));
}

}  // namespace skiff
