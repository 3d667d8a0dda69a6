// CUDA kernels of square and square_grad; square.cc has the formulas.
#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

struct Square {
  template <typename T>
  __device__ T operator()(T x) const {
    return x * x;
  }
};

struct SquareGrad {
  template <typename T>
  __device__ T operator()(T x, T dout) const {
    return T{2} * dout * x;
  }
};

}  // namespace

void RegisterSquareCuda(OpRegistry& registry) {
  AddCudaUnary<Square, SquareGrad>(registry, {.type = "square", .grad_reads = "X"});
}

}  // namespace skiff
