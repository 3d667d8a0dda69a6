// CUDA kernels of group_norm and its gradient; group_norm.cc has the formulas.
#include "operators/nn/normalization/cuda_group_norm.cuh"

namespace skiff {

void RegisterGroupNormCuda(OpRegistry& registry) {
  AddCudaGroupNormKernels(registry, "group_norm", CudaGroups::OfGroupNorm,
                          {.mean = "Mean", .statistic = "Variance"});
}

}  // namespace skiff
