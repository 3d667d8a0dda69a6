// CUDA kernels of bilinear_interp: see bilinear_interp_v2.cu.
#include "operators/nn/interpolation/interpolation.h"

namespace skiff {

void RegisterBilinearInterpCuda(OpRegistry& registry) {
  AddCudaInterpolation(registry, "bilinear_interp",
                       {Interpolation::kBilinear, InterpolationVersion::kFirst});
}

}  // namespace skiff
