// CUDA kernels of adam and merged_adam; adam.cc has the formula.
#include "operators/optimizer/kernels/cuda_update.cuh"

namespace skiff {
namespace {

#include "operators/optimizer/kernels/adam_formula-inl.h"

}  // namespace

void RegisterAdamCuda(OpRegistry& registry) {
  for (const char* type : {"adam", "merged_adam"}) {
    RegisterCudaUpdate<AdamFormula>(registry, type);
  }
}

}  // namespace skiff
