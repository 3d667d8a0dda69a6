// CUDA kernels of conv3d: see conv2d.cu.
#include "operators/nn/convolution/cuda_convolution.h"

namespace skiff {

void RegisterConv3dCuda(OpRegistry& registry) {
  AddCudaConvolution(registry, "conv3d", ParseVolumeConvolution);
}

}  // namespace skiff
