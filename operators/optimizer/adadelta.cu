// CUDA kernels of adadelta; adadelta.cc has the formula.
#include "operators/optimizer/update_kernel_shared.cuh"

namespace skiff {
namespace {

#include "operators/optimizer/adadelta_formula-inl.h"

}  // namespace

void RegisterAdadeltaCuda(OpRegistry& registry) {
  RegisterCudaUpdate<AdadeltaFormula>(registry, "adadelta");
}

}  // namespace skiff
