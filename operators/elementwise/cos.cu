// CUDA kernels of cos and cos_grad; cos.cc has the formulas.
#include <cmath>

#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

struct Cos {
  template <typename T>
  __device__ T operator()(T x) const {
    return std::cos(x);
  }
};

struct CosGrad {
  template <typename T>
  __device__ T operator()(T x, T dout) const {
    // Not -std::sin: the gradient of zeros must not be -0.
    return dout * (T{0} - std::sin(x));
  }
};

}  // namespace

void RegisterCosCuda(OpRegistry& registry) {
  AddCudaUnary<Cos, CosGrad>(registry, {.type = "cos", .grad_reads = "X"});
}

}  // namespace skiff
