// CUDA kernels of swish and swish_grad; swish.cc has the formulas.
#include <cmath>

#include "operators/common/finite.h"
#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

struct Swish {
  template <typename T>
  __device__ T operator()(T x) const {
    return AboveMinusInfinity(x) / (T{1} + std::exp(-x));
  }
};

struct SwishGrad {
  template <typename T>
  __device__ T operator()(T x, T dout) const {
    const T sigmoid = T{1} / (T{1} + std::exp(-x));
    return dout * sigmoid * (T{1} + NearestFinite(x) * (T{1} - sigmoid));
  }
};

}  // namespace

void RegisterSwishCuda(OpRegistry& registry) {
  AddCudaUnary<Swish, SwishGrad>(registry, {.type = "swish", .grad_reads = "X"});
}

}  // namespace skiff
