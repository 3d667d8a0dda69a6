// CUDA kernels of lamb; lamb.cc has the formula.
#include "operators/optimizer/update_kernel_shared.cuh"

namespace skiff {
namespace {

#include "operators/optimizer/lamb_formula-inl.h"

}  // namespace

void RegisterLambCuda(OpRegistry& registry) {
  RegisterCudaUpdate<LambFormula::Apply, LambFormula::Step>(registry, "lamb");
}

}  // namespace skiff
