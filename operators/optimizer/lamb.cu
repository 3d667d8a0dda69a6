// CUDA kernels of lamb; lamb.cc has the formula.
#include "operators/optimizer/kernels/cuda_update.cuh"

namespace skiff {
namespace {

#include "operators/optimizer/kernels/lamb_formula-inl.h"

}  // namespace

void RegisterLambCuda(OpRegistry& registry) {
  RegisterCudaUpdate<LambFormula::Apply, LambFormula::Step>(registry, "lamb");
}

}  // namespace skiff
