// bilinear_interp_v2: resizes images; each pixel is blended from the four around its position in
// the input. Along an axis, pixel k is at position ratio · k of the input, where ratio is (inputs -
// 1) / (outputs - 1) with align_corners, else 1 / scale or inputs / outputs. With align_mode 0 and
// without align_corners, its position is ratio · (k + 1/2) - 1/2, but at least 0. An output of one
// pixel takes the first one of the input. An output of the input's size is a copy. Source: Fluid's
// bilinear_interp_v2 (PaddlePaddle 2.6).
#include "operators/nn/interpolation/interpolation.h"

namespace skiff {

void RegisterBilinearInterpV2(OpRegistry& registry) {
  RegisterInterpolation(registry, "bilinear_interp_v2",
                        {Interpolation::kBilinear, InterpolationVersion::kSecond});
}

}  // namespace skiff
