// CUDA kernels of gru; gru.cc has the formulas.
#include <memory>

#include "framework/op/registry.h"
#include "operators/sequence/kernels/cuda_gru_steps.cuh"

namespace skiff {
namespace {

template <typename T>
std::unique_ptr<Kernel> PrepareGru(PrepareContext& context) {
  return std::make_unique<CudaRecurrentKernel<T, CudaGruForwardSteps<T>>>(context,
                                                                          GruLayerOf<T>(context));
}

template <typename T>
std::unique_ptr<Kernel> PrepareGruGrad(PrepareContext& context) {
  return std::make_unique<CudaRecurrentGradKernel<T, CudaGruBackwardSteps<T>>>(
      context, GruLayerOf<T>(context));
}

template <typename T>
void AddGruKernels(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "gru", PrepareGru<T>);
  AddCudaKernel<T>(registry, "gru_grad", PrepareGruGrad<T>);
}

}  // namespace

void RegisterGruCuda(OpRegistry& registry) {
  AddGruKernels<float>(registry);
  AddGruKernels<double>(registry);
}

}  // namespace skiff
