// CUDA kernels of batch_norm_act and its gradient; batch_norm_act.cc has the formulas.
#include "operators/nn/kernels/cuda_batch_norm.cuh"

namespace skiff {

void RegisterBatchNormActCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(
      registry, "batch_norm_act",
      [=]<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<CudaBatchNormKernel<T>>(context);
      });
  AddCudaKernels<float, double>(
      registry, "batch_norm_act_grad",
      [=]<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        if (context.HasInput("Y")) {
          return std::make_unique<CudaBatchNormGradKernel<T, CudaNormMask::kOutput>>(context);
        }
        return std::make_unique<CudaBatchNormGradKernel<T, CudaNormMask::kInput>>(context);
      });
}

}  // namespace skiff
