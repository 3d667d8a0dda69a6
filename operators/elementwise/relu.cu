// CUDA kernels of relu and relu_grad; relu.cc has the formulas.
#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

struct Relu {
  template <typename T>
  __device__ T operator()(T x) const {
    return x < T{0} ? T{0} : x;
  }
};

struct ReluGrad {
  template <typename T>
  __device__ T operator()(T out, T dout) const {
    return out > T{0} ? dout : T{0};
  }
};

}  // namespace

void RegisterReluCuda(OpRegistry& registry) {
  AddCudaUnary<Relu, ReluGrad>(registry, {.type = "relu", .grad_reads = "Out"});
}

}  // namespace skiff
