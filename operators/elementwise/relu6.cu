// CUDA kernels of relu6 and relu6_grad; relu6.cc has the formulas.
#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

struct Relu6 {
  template <typename T>
  __device__ T operator()(T x) const {
    const T above = x < T{0} ? T{0} : x;
    return above > T{6} ? T{6} : above;
  }
};

struct Relu6Grad {
  template <typename T>
  __device__ T operator()(T out, T dout) const {
    return out > T{0} && out < T{6} ? dout : T{0};
  }
};

}  // namespace

void RegisterRelu6Cuda(OpRegistry& registry) {
  AddCudaUnary<Relu6, Relu6Grad>(registry, {.type = "relu6", .grad_reads = "Out"});
}

}  // namespace skiff
