// CUDA kernels of log_loss and its gradient.
#include "operators/common/cuda_element_formula.cuh"
#include "operators/loss/kernels/log_loss_formula.h"

namespace skiff {

void RegisterLogLossCuda(OpRegistry& registry) {
  AddCudaFormulaKernels<LogLossFormula>(registry, "log_loss");
  AddCudaFormulaKernels<LogLossGradFormula>(registry, "log_loss_grad");
}

}  // namespace skiff
