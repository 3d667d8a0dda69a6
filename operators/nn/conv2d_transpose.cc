// conv2d_transpose: the transpose of a convolution of images.
// Source: Fluid's conv2d_transpose (PaddlePaddle 2.6).
#include "operators/nn/convolution/transposed_convolution.h"

namespace skiff {

void RegisterConv2dTranspose(OpRegistry& registry) {
  RegisterTransposedConvolution(registry, "conv2d_transpose", VolumeAxes::kImage);
}

}  // namespace skiff
