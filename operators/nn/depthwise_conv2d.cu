// CUDA kernels of depthwise_conv2d: see conv2d.cu.
#include "operators/nn/convolution/cuda_convolution.h"

namespace skiff {

void RegisterDepthwiseConv2dCuda(OpRegistry& registry) {
  AddCudaConvolution(registry, "depthwise_conv2d", [](const OpContext& context) {
    return VolumeConvolutionOf(ParseConvolution(context));
  });
}

}  // namespace skiff
