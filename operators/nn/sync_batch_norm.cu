// CUDA kernels of sync_batch_norm and its gradient; sync_batch_norm.cc has the formulas. Messages
// and passes are work of one stream, so the host waits for nothing.
#include "operators/nn/normalization/cuda_batch_norm.cuh"

namespace skiff {

void RegisterSyncBatchNormCuda(OpRegistry& registry) {
  AddCudaFloatKernels(registry, "sync_batch_norm", [=]<typename T>(PrepareContext& context) {
    return PrepareCudaBatchNorm<T>(context);
  });
  AddCudaFloatKernels(registry, "sync_batch_norm_grad", [=]<typename T>(PrepareContext& context) {
    return PrepareCudaBatchNormGrad<T, CudaNormMask::kNone>(context);
  });
}

}  // namespace skiff
