// reduce_min: Out = the smallest element of X over the axes `dim`, or over all of them. NaN counts
// as the smallest. Source: Fluid's reduce_min; dX = dOut at every element that equals its Out, 0
// elsewhere. A minimum of no elements is an Error.
#include "operators/math/kernels/extreme_reduction.h"

namespace skiff {

void RegisterReduceMin(OpRegistry& registry) {
  AddExtremeReduction(
      registry, /*is_max=*/false,
      ReductionDef("reduce_min",
                   "Out = the smallest element of X over the axes `dim`. Fluid's reduce_min."));
}

}  // namespace skiff
