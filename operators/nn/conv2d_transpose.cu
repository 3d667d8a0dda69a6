// CUDA kernels of conv2d_transpose: see conv2d.cu.
#include "operators/nn/convolution/cuda_convolution.h"
#include "operators/nn/convolution/transposed_convolution.h"

namespace skiff {

void RegisterConv2dTransposeCuda(OpRegistry& registry) {
  AddCudaTransposedConvolution(registry, "conv2d_transpose", [](const OpContext& context) {
    return ParseTransposedConvolution(context, VolumeAxes::kImage);
  });
}

}  // namespace skiff
