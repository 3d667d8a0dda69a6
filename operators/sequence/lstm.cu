// CUDA kernels of lstm and lstmp; lstm_cell.h, lstm.cc and lstmp.cc have the formulas.
#include <memory>

#include "framework/op/registry.h"
#include "operators/sequence/kernels/cuda_lstm_steps.cuh"
#include "operators/sequence/kernels/lstm_ops.h"

namespace skiff {
namespace {

template <typename T>
std::unique_ptr<Kernel> PrepareLstm(PrepareContext& context) {
  return std::make_unique<CudaRecurrentKernel<T, CudaLstmForwardSteps<T>>>(context,
                                                                           LstmLayerOf<T>(context));
}

template <typename T>
std::unique_ptr<Kernel> PrepareLstmGrad(PrepareContext& context) {
  return std::make_unique<CudaRecurrentGradKernel<T, CudaLstmBackwardSteps<T>>>(
      context, LstmLayerOf<T>(context));
}

template <typename T>
void AddLstmKernels(OpRegistry& registry, const std::string& type) {
  AddCudaKernel<T>(registry, type, PrepareLstm<T>);
  AddCudaKernel<T>(registry, type + "_grad", PrepareLstmGrad<T>);
}

}  // namespace

void AddLstmCudaKernels(OpRegistry& registry, const std::string& type) {
  AddLstmKernels<float>(registry, type);
  AddLstmKernels<double>(registry, type);
}

void RegisterLstmCuda(OpRegistry& registry) { AddLstmCudaKernels(registry, "lstm"); }

}  // namespace skiff
