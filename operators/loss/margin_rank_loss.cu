// CUDA kernels of margin_rank_loss and its gradient.
#include "operators/common/cuda_element_formula.cuh"
#include "operators/loss/kernels/margin_rank_loss_formula.h"

namespace skiff {

void RegisterMarginRankLossCuda(OpRegistry& registry) {
  AddCudaFormulaKernels<MarginRankLossFormula>(registry, "margin_rank_loss");
  AddCudaFormulaKernels<MarginRankLossGradFormula>(registry, "margin_rank_loss_grad");
}

}  // namespace skiff
