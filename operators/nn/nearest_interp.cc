// nearest_interp: version 1 of nearest_interp_v2, for old programs. `scale` is one number, and the
// distance of two pixels of the output is inputs / outputs pixels of the input even if it is set.
// Source: Fluid's nearest_interp (PaddlePaddle 2.6).
#include "operators/nn/interpolation/interpolation.h"

namespace skiff {

void RegisterNearestInterp(OpRegistry& registry) {
  RegisterInterpolation(registry, "nearest_interp",
                        {Interpolation::kNearest, InterpolationVersion::kFirst});
}

}  // namespace skiff
