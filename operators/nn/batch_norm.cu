// CUDA kernels of batch_norm and its gradient; batch_norm.cc has the formulas.
#include "operators/nn/normalization/cuda_batch_norm.cuh"

namespace skiff {

void RegisterBatchNormCuda(OpRegistry& registry) {
  AddCudaFloatKernels(registry, "batch_norm", [=]<typename T>(PrepareContext& context) {
    return PrepareCudaBatchNorm<T>(context);
  });
  AddCudaFloatKernels(registry, "batch_norm_grad", [=]<typename T>(PrepareContext& context) {
    return PrepareCudaBatchNormGrad<T, CudaNormMask::kNone>(context);
  });
}

}  // namespace skiff
