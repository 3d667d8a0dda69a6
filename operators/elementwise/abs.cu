// CUDA kernels of abs and abs_grad; abs.cc has the formulas.
#include <cmath>

#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

struct Abs {
  template <typename T>
  __device__ T operator()(T x) const {
    return std::abs(x);
  }
};

struct AbsGrad {
  template <typename T>
  __device__ T operator()(T x, T dout) const {
    // An element that is neither above nor below 0 is 0 or NaN, and its gradient is the same.
    if (x > T{0}) return dout;
    return x < T{0} ? T{0} - dout : x;
  }
};

}  // namespace

void RegisterAbsCuda(OpRegistry& registry) {
  AddCudaUnary<Abs, AbsGrad>(registry, {.type = "abs", .grad_reads = "X"});
}

}  // namespace skiff
