// CUDA kernels of elu and elu_grad; elu.cc has the formulas.
#include <cmath>

#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

struct Elu {
  explicit Elu(const UnaryNumbers& numbers) : alpha(numbers.values[0]) {}

  template <typename T>
  __device__ T operator()(T x) const {
    return x < T{0} ? static_cast<T>(alpha) * std::expm1(x) : x;
  }

  float alpha;
};

struct EluGrad {
  explicit EluGrad(const UnaryNumbers& numbers) : alpha(numbers.values[0]) {}

  template <typename T>
  __device__ T operator()(T x, T dout) const {
    // Adding 0 avoids -0 for gradients of 0.
    return x > T{0} ? dout : T{0} + dout * (static_cast<T>(alpha) * std::exp(x));
  }

  float alpha;
};

}  // namespace

void RegisterEluCuda(OpRegistry& registry) {
  AddCudaUnary<Elu, EluGrad>(registry, {.type = "elu", .grad_reads = "X", .attributes = {"alpha"}});
}

}  // namespace skiff
