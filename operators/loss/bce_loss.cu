// CUDA kernels of bce_loss and its gradient.
#include <array>

#include "operators/common/cuda/cuda_element_formula.cuh"

namespace skiff {
namespace {

#include "operators/loss/kernels/bce_loss_formula-inl.h"

}  // namespace

void RegisterBceLossCuda(OpRegistry& registry) {
  AddCudaFormulaKernels<BceLossFormula>(registry, "bce_loss");
  AddCudaFormulaKernels<BceLossGradFormula>(registry, "bce_loss_grad");
}

}  // namespace skiff
