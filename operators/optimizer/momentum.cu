// CUDA kernels of momentum and merged_momentum; momentum.cc has the formula.
#include "operators/optimizer/kernels/cuda_update.cuh"

namespace skiff {
namespace {

#include "operators/optimizer/kernels/momentum_formula-inl.h"

}  // namespace

void RegisterMomentumCuda(OpRegistry& registry) {
  for (const char* type : {"momentum", "merged_momentum"}) {
    RegisterCudaUpdate<MomentumFormula>(registry, type);
  }
}

}  // namespace skiff
