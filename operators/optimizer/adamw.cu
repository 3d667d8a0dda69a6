// CUDA kernels of adamw; adamw.cc has the formula.
#include "operators/optimizer/kernels/cuda_update.cuh"

namespace skiff {

// Named, since it includes the formula of adam: adam.cu, which is compiled with this file as one,
// has that in the anonymous namespace.
namespace adamw {

#include "operators/optimizer/kernels/adamw_formula-inl.h"

}  // namespace adamw

void RegisterAdamwCuda(OpRegistry& registry) {
  RegisterCudaUpdate<adamw::AdamwFormula>(registry, "adamw");
}

}  // namespace skiff
