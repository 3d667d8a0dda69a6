// CUDA kernels of huber_loss and its gradient.
#include "operators/common/cuda_element_formula.cuh"
#include "operators/loss/kernels/huber_loss_formula.h"

namespace skiff {

void RegisterHuberLossCuda(OpRegistry& registry) {
  AddCudaFormulaKernels<HuberLossFormula>(registry, "huber_loss");
  AddCudaFormulaKernels<HuberLossGradFormula>(registry, "huber_loss_grad");
}

}  // namespace skiff
