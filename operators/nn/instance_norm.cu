// CUDA kernels of instance_norm and its gradient; instance_norm.cc has the formulas.
#include "operators/nn/normalization/cuda_group_norm.cuh"

namespace skiff {

void RegisterInstanceNormCuda(OpRegistry& registry) {
  AddCudaGroupNormKernels(registry, "instance_norm", CudaGroups::OfInstanceNorm,
                          {.mean = "SavedMean", .statistic = "SavedVariance"});
}

}  // namespace skiff
