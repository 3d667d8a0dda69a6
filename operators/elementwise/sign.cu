// CUDA kernels of sign.
#include "framework/op/registry.h"
#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

#include "operators/elementwise/kernels/sign_formula-inl.h"

}  // namespace

void RegisterSignCuda(OpRegistry& registry) {
  AddCudaUnaryForward<SignFormula, float>(registry);
  AddCudaUnaryForward<SignFormula, double>(registry);
  AddCudaUnaryForward<SignFormula, BFloat16>(registry);
  AddCudaUnaryForward<SignFormula, Float16>(registry);
}

}  // namespace skiff
