// CUDA kernels of reduce_sum and reduce_sum_grad; reduce_sum.cc has the formulas.
#include "operators/math/kernels/cuda_reduction.cuh"

namespace skiff {

void RegisterReduceSumCuda(OpRegistry& registry) {
  AddCudaKernels<float, double, int32_t, int64_t, bool>(
      registry, "reduce_sum", [=]<typename T>(PrepareContext& context) {
        using Out = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
        using Rule = CudaSumRule<T, Out>;
        return PrepareCudaReduction<Rule, T, Out>(context, "reduce_sum",
                                                  [](const CudaFoldView&, const T* x, Out* out) {
                                                    return Rule{x, out, 1};
                                                  });
      });
  AddCudaKernels<float, double>(
      registry, "reduce_sum_grad", [=]<typename T>(PrepareContext& context) {
        return PrepareCudaSpread<T>(context, "reduce_sum_grad", /*divides=*/false);
      });
}

}  // namespace skiff
