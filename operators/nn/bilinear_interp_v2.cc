// bilinear_interp_v2: images of another size, each pixel blended from the four around it. Pixel k
// of an axis lies at ratio · k of the input, ratio being (inputs - 1) / (outputs - 1) with
// align_corners, else 1 / scale or inputs / outputs; with align_mode 0 and without align_corners it
// lies at ratio · (k + 1/2) - 1/2, from 0 on. One pixel of output takes the first of input, an
// output as large as the input is a copy.
// Source: Fluid's bilinear_interp_v2 (PaddlePaddle 2.6).
#include "operators/nn/kernels/interpolation.h"

namespace skiff {

void RegisterBilinearInterpV2(OpRegistry& registry) {
  RegisterInterpolation(registry, "bilinear_interp_v2", Interpolation::kBilinear);
}

}  // namespace skiff
