// nearest_interp_v2: resizes images; each pixel is the nearest one of the input. Along an axis,
// pixel k is pixel round(ratio · k) of the input with align_corners, else floor(ratio · k), where
// ratio is (inputs - 1) / (outputs - 1) with align_corners, else 1 / scale or inputs / outputs. An
// output of the input's size is a copy.
// Source: Fluid's nearest_interp_v2 (PaddlePaddle 2.6).
#include "operators/nn/interpolation/interpolation.h"

namespace skiff {

void RegisterNearestInterpV2(OpRegistry& registry) {
  RegisterInterpolation(registry, "nearest_interp_v2",
                        {Interpolation::kNearest, InterpolationVersion::kSecond});
}

}  // namespace skiff
