// CUDA kernels of prelu and prelu_grad; prelu.cc has the formulas.
#include <memory>

#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/elementwise/kernels/cuda_binary.cuh"
#include "operators/elementwise/kernels/cuda_binary_kernel.h"
#include "operators/elementwise/kernels/prelu_alpha.h"

namespace skiff {
namespace {

#include "operators/elementwise/kernels/prelu_formula-inl.h"

template <typename T>
std::unique_ptr<Kernel> PreparePrelu(PrepareContext& context) {
  return MakeCudaBinaryKernel(context,
                              {.x = context.InputIndex("X"),
                               .y = context.InputIndex("Alpha"),
                               .out = context.OutputIndex("Out"),
                               .loops_of =
                                   [axes = AlphaAxesOf(context)](const Tensor& x, const Tensor&) {
                                     return BroadcastOfAlpha(x.shape(), axes);
                                   }},
                              cuda_binary::LaunchForward<PreluFormula, true, T, T>);
}

template <typename T>
std::unique_ptr<Kernel> PreparePreluGrad(PrepareContext& context) {
  return MakeCudaBinaryGradKernel(
      context,
      {.inputs = {.x = context.InputIndex("X"),
                  .y = context.InputIndex("Alpha"),
                  .dout = context.InputIndex("Out@GRAD")},
       .dx = context.OutputIndex("X@GRAD"),
       .dy = context.OutputIndex("Alpha@GRAD"),
       .loops_of = [axes = AlphaAxesOf(context)](
                       const Shape& dout) { return BroadcastOfAlpha(dout, axes); }},
      cuda_binary::LaunchGradients<PreluFormula, T>);
}

}  // namespace

void RegisterPreluCuda(OpRegistry& registry) {
  AddCudaFloatKernels(registry, "prelu", [=]<typename T>(PrepareContext& context) {
    return PreparePrelu<T>(context);
  });
  AddCudaFloatKernels(registry, "prelu_grad", [=]<typename T>(PrepareContext& context) {
    return PreparePreluGrad<T>(context);
  });
}

}  // namespace skiff
