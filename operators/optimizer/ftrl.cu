// CUDA kernels of ftrl; ftrl.cc has the formula.
#include "operators/optimizer/kernels/cuda_update.cuh"

namespace skiff {
namespace {

#include "operators/optimizer/kernels/ftrl_formula-inl.h"

template <typename T>
std::unique_ptr<Kernel> PrepareFtrl(PrepareContext& context) {
  if (context.Attr<float>("lr_power") == -0.5f) {
    return MakeCudaUpdateKernel<FtrlFormula<true>, GradientStep, T>(context);
  }
  return MakeCudaUpdateKernel<FtrlFormula<false>, GradientStep, T>(context);
}

}  // namespace

void RegisterFtrlCuda(OpRegistry& registry) {
  AddCudaUpdateKernels(registry, "ftrl", PrepareFtrl<float>, PrepareFtrl<double>);
}

}  // namespace skiff
