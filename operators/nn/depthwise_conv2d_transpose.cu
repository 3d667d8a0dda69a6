// CUDA kernels of depthwise_conv2d_transpose: see conv2d.cu.
#include "operators/nn/convolution/cuda_convolution.h"
#include "operators/nn/convolution/transposed_convolution.h"

namespace skiff {

void RegisterDepthwiseConv2dTransposeCuda(OpRegistry& registry) {
  AddCudaTransposedConvolution(registry, "depthwise_conv2d_transpose",
                               [](const OpContext& context) {
                                 return ParseTransposedConvolution(context, VolumeAxes::kImage);
                               });
}

}  // namespace skiff
