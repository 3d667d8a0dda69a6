// CUDA kernels of gelu and gelu_grad; gelu.cc has the formulas.
#include "operators/common/cuda_gelu.cuh"
#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

struct Gelu {
  explicit Gelu(const UnaryNumbers& numbers) : approximate(numbers.values[0] != 0) {}

  template <typename T>
  __device__ T operator()(T x) const {
    return GeluCurve<T>(x, approximate).Value();
  }

  bool approximate;
};

struct GeluGrad {
  explicit GeluGrad(const UnaryNumbers& numbers) : approximate(numbers.values[0] != 0) {}

  template <typename T>
  __device__ T operator()(T x, T dout) const {
    return dout * GeluCurve<T>(x, approximate).Slope();
  }

  bool approximate;
};

}  // namespace

void RegisterGeluCuda(OpRegistry& registry) {
  AddCudaUnary<Gelu, GeluGrad>(registry,
                               {.type = "gelu", .grad_reads = "X", .attributes = {"approximate"}});
}

}  // namespace skiff
