// CUDA kernels of adadelta; adadelta.cc has the formula.
#include "operators/optimizer/kernels/cuda_update.cuh"

namespace skiff {
namespace {

#include "operators/optimizer/kernels/adadelta_formula-inl.h"

}  // namespace

void RegisterAdadeltaCuda(OpRegistry& registry) {
  RegisterCudaUpdate<AdadeltaFormula>(registry, "adadelta");
}

}  // namespace skiff
