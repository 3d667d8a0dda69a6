// CUDA kernels of reciprocal and reciprocal_grad; reciprocal.cc has the formulas.
#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

struct Reciprocal {
  template <typename T>
  __device__ T operator()(T x) const {
    return T{1} / x;
  }
};

struct ReciprocalGrad {
  template <typename T>
  __device__ T operator()(T out, T dout) const {
    return -(dout * (out * out));
  }
};

}  // namespace

void RegisterReciprocalCuda(OpRegistry& registry) {
  AddCudaUnary<Reciprocal, ReciprocalGrad>(registry, {.type = "reciprocal", .grad_reads = "Out"});
}

}  // namespace skiff
