// CUDA kernels of sign.
#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

struct Sign {
  template <typename T>
  __device__ T operator()(T x) const {
    if (x > T{0}) return T{1};
    return x < T{0} ? T{-1} : x;
  }
};

}  // namespace

void RegisterSignCuda(OpRegistry& registry) {
  AddCudaUnaryForward<Sign, float, double>(registry, {.type = "sign"});
}

}  // namespace skiff
