// CUDA kernels of sgd; sgd.cc has the formula.
#include "operators/optimizer/kernels/cuda_update.cuh"

namespace skiff {
namespace {

#include "operators/optimizer/kernels/sgd_formula-inl.h"

}  // namespace

void RegisterSgdCuda(OpRegistry& registry) { RegisterCudaUpdate<SgdFormula>(registry, "sgd"); }

}  // namespace skiff
