// CUDA kernels of nearest_interp_v2: see bilinear_interp_v2.cu.
#include "operators/nn/interpolation/interpolation.h"

namespace skiff {

void RegisterNearestInterpV2Cuda(OpRegistry& registry) {
  AddCudaInterpolation(registry, "nearest_interp_v2",
                       {Interpolation::kNearest, InterpolationVersion::kSecond});
}

}  // namespace skiff
