// CUDA kernels of adamax; adamax.cc has the formula.
#include "operators/optimizer/update_kernel_shared.cuh"

namespace skiff {
namespace {

#include "operators/optimizer/adamax_formula-inl.h"

}  // namespace

void RegisterAdamaxCuda(OpRegistry& registry) {
  RegisterCudaUpdate<AdamaxFormula>(registry, "adamax");
}

}  // namespace skiff
