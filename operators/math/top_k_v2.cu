// CUDA kernels of top_k_v2 and top_k_v2_grad.
#include "operators/math/kernels/cuda_top_k.cuh"

namespace skiff {

void RegisterTopKV2Cuda(OpRegistry& registry) { AddCudaTopKKernels(registry, /*is_v2=*/true); }

}  // namespace skiff
