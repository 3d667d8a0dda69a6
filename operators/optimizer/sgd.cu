// CUDA kernels of sgd; sgd.cc has the formula.
#include "operators/optimizer/update_kernel_shared.cuh"

namespace skiff {
namespace {

#include "operators/optimizer/sgd_formula-inl.h"

}  // namespace

void RegisterSgdCuda(OpRegistry& registry) { RegisterCudaUpdate<SgdFormula>(registry, "sgd"); }

}  // namespace skiff
