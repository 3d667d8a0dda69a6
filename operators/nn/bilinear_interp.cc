// bilinear_interp: version 1 of bilinear_interp_v2, for old programs. `scale` is one number, and
// the distance of two pixels of the output is inputs / outputs pixels of the input even if it is
// set. Source: Fluid's bilinear_interp (PaddlePaddle 2.6).
#include "operators/nn/interpolation/interpolation.h"

namespace skiff {

void RegisterBilinearInterp(OpRegistry& registry) {
  RegisterInterpolation(registry, "bilinear_interp",
                        {Interpolation::kBilinear, InterpolationVersion::kFirst});
}

}  // namespace skiff
