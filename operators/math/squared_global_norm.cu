// CUDA kernels of squared_global_norm; squared_global_norm.cc has the formula.
#include "framework/op/registry.h"
#include "operators/math/kernels/squared_norm.cuh"

namespace skiff {

void RegisterSquaredGlobalNormCuda(OpRegistry& registry) {
  AddCudaSquaredNormKernels(registry, "squared_global_norm");
}

}  // namespace skiff
