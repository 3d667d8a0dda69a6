// CUDA kernels of reduce_mean and reduce_mean_grad; reduce_mean.cc has the formulas.
#include "operators/math/kernels/cuda_reduction.cuh"

namespace skiff {

void RegisterReduceMeanCuda(OpRegistry& registry) {
  AddCudaKernels<float, double, int32_t, int64_t>(
      registry, "reduce_mean", [=]<typename T>(PrepareContext& context) {
        using Rule = CudaSumRule<T, T>;
        const Shape& prepared = context.Input("X").shape;
        CheckSomethingIsReduced("reduce_mean", prepared,
                                AxisReduction(prepared, ReducedAxes(context)));
        return PrepareCudaReduction<Rule, T, T>(context, "reduce_mean",
                                                [](const CudaFoldView& view, const T* x, T* out) {
                                                  return Rule{x, out, view.elements};
                                                });
      });
  AddCudaKernels<float, double>(
      registry, "reduce_mean_grad", [=]<typename T>(PrepareContext& context) {
        return PrepareCudaSpread<T>(context, "reduce_mean_grad", /*divides=*/true);
      });
}

}  // namespace skiff
