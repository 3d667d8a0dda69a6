// CUDA kernels of ceil and ceil_grad; ceil.cc has the formulas.
#include <cmath>

#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

struct Ceil {
  template <typename T>
  __device__ T operator()(T x) const {
    return std::ceil(x);
  }
};

}  // namespace

void RegisterCeilCuda(OpRegistry& registry) {
  AddCudaUnary<Ceil, CudaZeroGradient>(registry, {.type = "ceil"});
}

}  // namespace skiff
