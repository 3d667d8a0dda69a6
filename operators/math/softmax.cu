// CUDA kernels of softmax and softmax_grad; softmax.cc has the formulas.
#include "operators/math/kernels/cuda_softmax.cuh"

namespace skiff {

void RegisterSoftmaxCuda(OpRegistry& registry) {
  AddCudaSoftmaxKernels</*kIsLog=*/false>(registry, "softmax");
}

}  // namespace skiff
