// CUDA kernels of adamw; adamw.cc has the formula.
#include "operators/optimizer/kernels/cuda_update.cuh"

namespace skiff {

// It brings the formula of adam, as adam.cu does, with which this source is compiled as one.
namespace adamw {

#include "operators/optimizer/kernels/adamw_formula-inl.h"

}  // namespace adamw

void RegisterAdamwCuda(OpRegistry& registry) {
  RegisterCudaUpdate<adamw::AdamwFormula>(registry, "adamw");
}

}  // namespace skiff
