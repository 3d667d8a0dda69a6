// CUDA kernels of rsqrt and rsqrt_grad; rsqrt.cc has the formulas.
#include <cmath>

#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

struct Rsqrt {
  template <typename T>
  __device__ T operator()(T x) const {
    return T{1} / std::sqrt(x);
  }
};

struct RsqrtGrad {
  template <typename T>
  __device__ T operator()(T out, T dout) const {
    return T{-0.5} * dout * (out * out * out);
  }
};

}  // namespace

void RegisterRsqrtCuda(OpRegistry& registry) {
  AddCudaUnary<Rsqrt, RsqrtGrad>(registry, {.type = "rsqrt", .grad_reads = "Out"});
}

}  // namespace skiff
