// CUDA kernels of margin_rank_loss and its gradient.
#include <array>

#include "operators/common/cuda/cuda_element_formula.cuh"

namespace skiff {
namespace {

#include "operators/loss/kernels/margin_rank_loss_formula-inl.h"

}  // namespace

void RegisterMarginRankLossCuda(OpRegistry& registry) {
  AddCudaFormulaKernels<MarginRankLossFormula>(registry, "margin_rank_loss");
  AddCudaFormulaKernels<MarginRankLossGradFormula>(registry, "margin_rank_loss_grad");
}

}  // namespace skiff
