// CUDA kernels of reduce_max and reduce_max_grad; reduce_max.cc has the formulas.
#include "operators/math/kernels/cuda_reduction.cuh"

namespace skiff {

void RegisterReduceMaxCuda(OpRegistry& registry) {
  AddCudaExtremeKernels</*kIsMax=*/true>(registry);
}

}  // namespace skiff
