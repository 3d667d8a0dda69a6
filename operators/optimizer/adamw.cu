// CUDA kernels of adamw; adamw.cc has the formula.
#include "operators/optimizer/kernels/cuda_update.cuh"

namespace skiff {
namespace {

#include "operators/optimizer/kernels/adamw_formula-inl.h"

}  // namespace

void RegisterAdamwCuda(OpRegistry& registry) {
  RegisterCudaUpdate<AdamwFormula>(registry, "adamw");
}

}  // namespace skiff
