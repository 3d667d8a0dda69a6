// CUDA kernels of nearest_interp: see bilinear_interp_v2.cu.
#include "operators/nn/interpolation/interpolation.h"

namespace skiff {

void RegisterNearestInterpCuda(OpRegistry& registry) {
  AddCudaInterpolation(registry, "nearest_interp",
                       {Interpolation::kNearest, InterpolationVersion::kFirst});
}

}  // namespace skiff
