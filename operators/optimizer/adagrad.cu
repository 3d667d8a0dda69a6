// CUDA kernels of adagrad and decayed_adagrad; adagrad.cc has the formula.
#include "operators/optimizer/kernels/cuda_update.cuh"

namespace skiff {
namespace {

#include "operators/optimizer/kernels/adagrad_formula-inl.h"

}  // namespace

void RegisterAdagradCuda(OpRegistry& registry) {
  RegisterCudaUpdate<AdagradFormula>(registry, "adagrad");
  RegisterCudaUpdate<DecayedAdagradFormula>(registry, "decayed_adagrad");
}

}  // namespace skiff
