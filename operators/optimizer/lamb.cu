// CUDA kernels of lamb; lamb.cc has the formula.
#include "operators/optimizer/kernels/cuda_update.cuh"

namespace skiff {

// It brings the formula of adam, as adam.cu does, with which this source is compiled as one.
namespace lamb {

#include "operators/optimizer/kernels/lamb_formula-inl.h"

}  // namespace lamb

void RegisterLambCuda(OpRegistry& registry) {
  RegisterCudaUpdate<lamb::LambFormula::Apply, lamb::LambFormula::Step>(registry, "lamb");
}

}  // namespace skiff
