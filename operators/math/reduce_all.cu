// CUDA kernel of reduce_all; reduce_all.cc has the formula.
#include "operators/math/kernels/cuda_reduction.cuh"

namespace skiff {

void RegisterReduceAllCuda(OpRegistry& registry) {
  AddCudaKernels<bool>(registry, "reduce_all", [=]<typename T>(PrepareContext& context) {
    using Rule = CudaQuantifierRule</*kOfAll=*/true>;
    return PrepareCudaReduction<Rule, T, T>(context, "reduce_all",
                                            [](const CudaFoldView&, const T* x, T* out) {
                                              return Rule{x, out};
                                            });
  });
}

}  // namespace skiff
