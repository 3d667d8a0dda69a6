// CUDA kernels of log_loss and its gradient.
#include <array>

#include "operators/common/cuda/cuda_element_formula.cuh"

namespace skiff {
namespace {

#include "operators/loss/kernels/log_loss_formula-inl.h"

}  // namespace

void RegisterLogLossCuda(OpRegistry& registry) {
  AddCudaFormulaKernels<LogLossFormula>(registry, "log_loss");
  AddCudaFormulaKernels<LogLossGradFormula>(registry, "log_loss_grad");
}

}  // namespace skiff
