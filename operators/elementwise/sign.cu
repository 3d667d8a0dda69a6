// CUDA kernels of sign.
#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

#include "operators/elementwise/kernels/sign_formula-inl.h"

}  // namespace

void RegisterSignCuda(OpRegistry& registry) {
  AddCudaUnaryForward<SignFormula, float>(registry);
  AddCudaUnaryForward<SignFormula, double>(registry);
}

}  // namespace skiff
