// CUDA kernels of round and round_grad; round.cc has the formulas.
#include <cmath>

#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

struct Round {
  template <typename T>
  __device__ T operator()(T x) const {
    return std::round(x);
  }
};

}  // namespace

void RegisterRoundCuda(OpRegistry& registry) {
  AddCudaUnary<Round, CudaZeroGradient>(registry, {.type = "round"});
}

}  // namespace skiff
