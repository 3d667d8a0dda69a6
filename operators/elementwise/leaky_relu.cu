// CUDA kernels of leaky_relu and leaky_relu_grad; leaky_relu.cc has the formulas.
#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

struct LeakyRelu {
  explicit LeakyRelu(const UnaryNumbers& numbers) : alpha(numbers.values[0]) {}

  template <typename T>
  __device__ T operator()(T x) const {
    return x < T{0} ? x * static_cast<T>(alpha) : x;
  }

  float alpha;
};

struct LeakyReluGrad {
  explicit LeakyReluGrad(const UnaryNumbers& numbers) : alpha(numbers.values[0]) {}

  template <typename T>
  __device__ T operator()(T x, T dout) const {
    return x < T{0} ? dout * static_cast<T>(alpha) : dout;
  }

  float alpha;
};

}  // namespace

void RegisterLeakyReluCuda(OpRegistry& registry) {
  AddCudaUnary<LeakyRelu, LeakyReluGrad>(
      registry, {.type = "leaky_relu", .grad_reads = "X", .attributes = {"alpha"}});
}

}  // namespace skiff
