// CUDA kernels of arg_min.
#include "operators/math/kernels/cuda_arg_extreme.cuh"

namespace skiff {

void RegisterArgMinCuda(OpRegistry& registry) {
  AddCudaArgExtremeKernels(registry, "arg_min", /*is_max=*/false);
}

}  // namespace skiff
