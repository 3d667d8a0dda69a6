// CUDA kernels of adamax; adamax.cc has the formula.
#include "operators/optimizer/kernels/cuda_update.cuh"

namespace skiff {
namespace {

#include "operators/optimizer/kernels/adamax_formula-inl.h"

}  // namespace

void RegisterAdamaxCuda(OpRegistry& registry) {
  RegisterCudaUpdate<AdamaxFormula>(registry, "adamax");
}

}  // namespace skiff
