// nearest_interp_v2: images of another size, each pixel the nearest of the input. Pixel k of an
// axis is pixel round(ratio · k) with align_corners, else floor(ratio · k); ratio is (inputs - 1) /
// (outputs - 1) with align_corners, else 1 / scale or inputs / outputs. An output as large as the
// input is a copy.
// Source: Fluid's nearest_interp_v2 (PaddlePaddle 2.6).
#include "operators/nn/kernels/interpolation.h"

namespace skiff {

void RegisterNearestInterpV2(OpRegistry& registry) {
  RegisterInterpolation(registry, "nearest_interp_v2", Interpolation::kNearest);
}

}  // namespace skiff
