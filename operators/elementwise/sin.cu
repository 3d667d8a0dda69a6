// CUDA kernels of sin and sin_grad; sin.cc has the formulas.
#include <cmath>

#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

struct Sin {
  template <typename T>
  __device__ T operator()(T x) const {
    return std::sin(x);
  }
};

struct SinGrad {
  template <typename T>
  __device__ T operator()(T x, T dout) const {
    return dout * std::cos(x);
  }
};

}  // namespace

void RegisterSinCuda(OpRegistry& registry) {
  AddCudaUnary<Sin, SinGrad>(registry, {.type = "sin", .grad_reads = "X"});
}

}  // namespace skiff
