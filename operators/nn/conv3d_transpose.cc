// conv3d_transpose: the transpose of a convolution of volumes.
// Source: Fluid's conv3d_transpose (PaddlePaddle 2.6).
#include "operators/nn/convolution/transposed_convolution.h"

namespace skiff {

void RegisterConv3dTranspose(OpRegistry& registry) {
  RegisterTransposedConvolution(registry, "conv3d_transpose", VolumeAxes::kVolume);
}

}  // namespace skiff
