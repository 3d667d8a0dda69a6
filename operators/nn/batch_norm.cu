// CUDA kernels of batch_norm and its gradient; batch_norm.cc has the formulas.
#include "operators/nn/kernels/cuda_batch_norm.cuh"

namespace skiff {

void RegisterBatchNormCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(
      registry, "batch_norm", [=]<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<CudaBatchNormKernel<T>>(context);
      });
  AddCudaKernels<float, double>(
      registry, "batch_norm_grad",
      [=]<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<CudaBatchNormGradKernel<T, CudaNormMask::kNone>>(context);
      });
}

}  // namespace skiff
