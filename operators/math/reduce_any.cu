// CUDA kernel of reduce_any; reduce_any.cc has the formula.
#include "operators/math/kernels/cuda_reduction.cuh"

namespace skiff {

void RegisterReduceAnyCuda(OpRegistry& registry) {
  AddCudaKernels<bool>(registry, "reduce_any", [=]<typename T>(PrepareContext& context) {
    using Rule = CudaQuantifierRule</*kOfAll=*/false>;
    return PrepareCudaReduction<Rule, T, T>(context, "reduce_any",
                                            [](const CudaFoldView&, const T* x, T* out) {
                                              return Rule{x, out};
                                            });
  });
}

}  // namespace skiff
