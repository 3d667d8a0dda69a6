// CUDA kernels of tanh and tanh_grad; tanh.cc has the formulas.
#include <cmath>

#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

struct Tanh {
  template <typename T>
  __device__ T operator()(T x) const {
    return std::tanh(x);
  }
};

struct TanhGrad {
  template <typename T>
  __device__ T operator()(T out, T dout) const {
    return dout * (T{1} - out * out);
  }
};

}  // namespace

void RegisterTanhCuda(OpRegistry& registry) {
  AddCudaUnary<Tanh, TanhGrad>(registry, {.type = "tanh", .grad_reads = "Out"});
}

}  // namespace skiff
