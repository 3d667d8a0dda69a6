// CUDA kernels of sqrt and sqrt_grad; sqrt.cc has the formulas.
#include <cmath>

#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

struct Sqrt {
  template <typename T>
  __device__ T operator()(T x) const {
    return std::sqrt(x);
  }
};

struct SqrtGrad {
  template <typename T>
  __device__ T operator()(T out, T dout) const {
    return T{0.5} * dout / out;
  }
};

}  // namespace

void RegisterSqrtCuda(OpRegistry& registry) {
  AddCudaUnary<Sqrt, SqrtGrad>(registry, {.type = "sqrt", .grad_reads = "Out"});
}

}  // namespace skiff
