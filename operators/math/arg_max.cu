// CUDA kernels of arg_max.
#include "operators/math/kernels/cuda_arg_extreme.cuh"

namespace skiff {

void RegisterArgMaxCuda(OpRegistry& registry) {
  AddCudaArgExtremeKernels(registry, "arg_max", /*is_max=*/true);
}

}  // namespace skiff
