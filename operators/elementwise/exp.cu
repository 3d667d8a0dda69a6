// CUDA kernels of exp and exp_grad; exp.cc has the formulas.
#include <cmath>

#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

struct Exp {
  template <typename T>
  __device__ T operator()(T x) const {
    return std::exp(x);
  }
};

struct ExpGrad {
  template <typename T>
  __device__ T operator()(T out, T dout) const {
    return dout * out;
  }
};

}  // namespace

void RegisterExpCuda(OpRegistry& registry) {
  AddCudaUnary<Exp, ExpGrad>(registry, {.type = "exp", .grad_reads = "Out"});
}

}  // namespace skiff
