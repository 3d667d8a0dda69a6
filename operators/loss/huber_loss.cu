// CUDA kernels of huber_loss and its gradient.
#include <array>

#include "operators/common/cuda/cuda_element_formula.cuh"

namespace skiff {
namespace {

#include "operators/loss/kernels/huber_loss_formula-inl.h"

}  // namespace

void RegisterHuberLossCuda(OpRegistry& registry) {
  AddCudaFormulaKernels<HuberLossFormula>(registry, "huber_loss");
  AddCudaFormulaKernels<HuberLossGradFormula>(registry, "huber_loss_grad");
}

}  // namespace skiff
