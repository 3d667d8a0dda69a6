// CUDA kernels of sigmoid and sigmoid_grad; sigmoid.cc has the formulas.
#include <cmath>

#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

struct Sigmoid {
  template <typename T>
  __device__ T operator()(T x) const {
    return T{1} / (T{1} + std::exp(-x));
  }
};

struct SigmoidGrad {
  template <typename T>
  __device__ T operator()(T out, T dout) const {
    return dout * (out * (T{1} - out));
  }
};

}  // namespace

void RegisterSigmoidCuda(OpRegistry& registry) {
  AddCudaUnary<Sigmoid, SigmoidGrad>(registry, {.type = "sigmoid", .grad_reads = "Out"});
}

}  // namespace skiff
