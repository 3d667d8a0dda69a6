// CUDA kernels of lamb; lamb.cc has the formula.
#include "operators/optimizer/kernels/cuda_update.cuh"

namespace skiff {

// Named, since it includes the formula of adam: adam.cu, which is compiled with this file as one,
// has that in the anonymous namespace.
namespace lamb {

#include "operators/optimizer/kernels/lamb_formula-inl.h"

}  // namespace lamb

void RegisterLambCuda(OpRegistry& registry) {
  RegisterCudaUpdate<lamb::LambFormula::Apply, lamb::LambFormula::Step>(registry, "lamb");
}

}  // namespace skiff
