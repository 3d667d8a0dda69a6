// CUDA kernels of rmsprop; rmsprop.cc has the formula.
#include "operators/optimizer/kernels/cuda_update.cuh"

namespace skiff {
namespace {

#include "operators/optimizer/kernels/rmsprop_formula-inl.h"

template <typename T>
std::unique_ptr<Kernel> PrepareRmsprop(PrepareContext& context) {
  if (context.Attr<bool>("centered")) {
    return MakeCudaUpdateKernel<RmspropFormula<true>, GradientStep, T>(context);
  }
  return MakeCudaUpdateKernel<RmspropFormula<false>, GradientStep, T>(context);
}

}  // namespace

void RegisterRmspropCuda(OpRegistry& registry) {
  AddCudaUpdateKernels(registry, "rmsprop", PrepareRmsprop<float>, PrepareRmsprop<double>);
}

}  // namespace skiff
