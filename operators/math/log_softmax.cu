// CUDA kernels of log_softmax and log_softmax_grad; log_softmax.cc has the formulas.
#include "operators/math/kernels/cuda_softmax.cuh"

namespace skiff {

void RegisterLogSoftmaxCuda(OpRegistry& registry) {
  AddCudaSoftmaxKernels</*kIsLog=*/true>(registry, "log_softmax");
}

}  // namespace skiff
