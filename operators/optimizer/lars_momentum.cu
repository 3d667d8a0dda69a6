// CUDA kernels of lars_momentum; lars_momentum.cc has the formula.
#include "operators/optimizer/kernels/cuda_update.cuh"

namespace skiff {
namespace {

#include "operators/optimizer/kernels/lars_momentum_formula-inl.h"

}  // namespace

void RegisterLarsMomentumCuda(OpRegistry& registry) {
  RegisterCudaUpdate<LarsMomentumFormula>(registry, "lars_momentum");
}

}  // namespace skiff
