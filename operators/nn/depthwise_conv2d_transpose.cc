// depthwise_conv2d_transpose: conv2d_transpose by another name, for a group a channel; groups
// is its attribute too.
// Source: Fluid's depthwise_conv2d_transpose (PaddlePaddle 2.6).
#include "operators/nn/convolution/transposed_convolution.h"

namespace skiff {

void RegisterDepthwiseConv2dTranspose(OpRegistry& registry) {
  RegisterTransposedConvolution(registry, "depthwise_conv2d_transpose", VolumeAxes::kImage);
}

}  // namespace skiff
