// CUDA kernels of adamw; adamw.cc has the formula.
#include "operators/optimizer/update_kernel_shared.cuh"

namespace skiff {
namespace {

#include "operators/optimizer/adamw_formula-inl.h"

}  // namespace

void RegisterAdamwCuda(OpRegistry& registry) {
  RegisterCudaUpdate<AdamwFormula>(registry, "adamw");
}

}  // namespace skiff
