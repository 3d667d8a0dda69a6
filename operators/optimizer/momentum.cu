// CUDA kernels of momentum and merged_momentum; momentum.cc has the formula.
#include "operators/optimizer/update_kernel_shared.cuh"

namespace skiff {
namespace {

#include "operators/optimizer/momentum_formula-inl.h"

}  // namespace

void RegisterMomentumCuda(OpRegistry& registry) {
  for (const char* type : {"momentum", "merged_momentum"}) {
    RegisterCudaUpdate<MomentumFormula>(registry, type);
  }
}

}  // namespace skiff
