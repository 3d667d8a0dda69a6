// CUDA kernels of squared_l2_norm; squared_l2_norm.cc has the formula.
#include "framework/op/registry.h"
#include "operators/math/kernels/squared_norm.cuh"

namespace skiff {

void RegisterSquaredL2NormCuda(OpRegistry& registry) {
  AddCudaSquaredNormKernel<float>(registry, "squared_l2_norm");
  AddCudaSquaredNormKernel<double>(registry, "squared_l2_norm");
}

}  // namespace skiff
