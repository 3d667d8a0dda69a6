// CUDA kernels of softsign and softsign_grad; softsign.cc has the formulas.
#include <cmath>

#include "operators/common/finite.h"
#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

struct Softsign {
  template <typename T>
  __device__ T operator()(T any) const {
    const T x = NearestFinite(any);
    return x / (T{1} + std::abs(x));
  }
};

struct SoftsignGrad {
  template <typename T>
  __device__ T operator()(T x, T dout) const {
    const T below = T{1} + std::abs(x);
    return dout / (below * below);
  }
};

}  // namespace

void RegisterSoftsignCuda(OpRegistry& registry) {
  AddCudaUnary<Softsign, SoftsignGrad>(registry, {.type = "softsign", .grad_reads = "X"});
}

}  // namespace skiff
