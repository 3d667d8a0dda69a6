// CUDA kernels of batch_norm_act and its gradient; batch_norm_act.cc has the formulas.
#include "operators/nn/normalization/cuda_batch_norm.cuh"

namespace skiff {

void RegisterBatchNormActCuda(OpRegistry& registry) {
  AddCudaFloatKernels(registry, "batch_norm_act", [=]<typename T>(PrepareContext& context) {
    return PrepareCudaBatchNorm<T>(context);
  });
  AddCudaFloatKernels(registry, "batch_norm_act_grad", [=]<typename T>(PrepareContext& context) {
    if (context.HasInput("Y")) {
      return PrepareCudaBatchNormGrad<T, CudaNormMask::kOutput>(context);
    }
    return PrepareCudaBatchNormGrad<T, CudaNormMask::kInput>(context);
  });
}

}  // namespace skiff
