// CUDA kernels of top_k and top_k_grad.
#include "operators/math/kernels/cuda_top_k.cuh"

namespace skiff {

void RegisterTopKCuda(OpRegistry& registry) { AddCudaTopKKernels(registry, /*is_v2=*/false); }

}  // namespace skiff
