// CUDA kernels of conv3d_transpose: see conv2d.cu.
#include "operators/nn/convolution/cuda_convolution.h"
#include "operators/nn/convolution/transposed_convolution.h"

namespace skiff {

void RegisterConv3dTransposeCuda(OpRegistry& registry) {
  AddCudaTransposedConvolution(registry, "conv3d_transpose", [](const OpContext& context) {
    return ParseTransposedConvolution(context, VolumeAxes::kVolume);
  });
}

}  // namespace skiff
