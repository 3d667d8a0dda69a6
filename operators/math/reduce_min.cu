// CUDA kernels of reduce_min and reduce_min_grad; reduce_min.cc has the formulas.
#include "operators/math/kernels/cuda_reduction.cuh"

namespace skiff {

void RegisterReduceMinCuda(OpRegistry& registry) {
  AddCudaExtremeKernels</*kIsMax=*/false>(registry);
}

}  // namespace skiff
