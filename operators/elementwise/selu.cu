// CUDA kernels of selu and selu_grad; selu.cc has the formulas.
#include <cmath>

#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

struct Selu {
  explicit Selu(const UnaryNumbers& numbers) : scale(numbers.values[0]), alpha(numbers.values[1]) {}

  template <typename T>
  __device__ T operator()(T x) const {
    const T factor = static_cast<T>(scale);
    return x < T{0} ? factor * static_cast<T>(alpha) * std::expm1(x) : factor * x;
  }

  float scale;
  float alpha;
};

struct SeluGrad {
  explicit SeluGrad(const UnaryNumbers& numbers)
      : scale(numbers.values[0]), alpha(numbers.values[1]) {}

  template <typename T>
  __device__ T operator()(T out, T dout) const {
    const T factor = static_cast<T>(scale);
    return dout * (out > T{0} ? factor : out + factor * static_cast<T>(alpha));
  }

  float scale;
  float alpha;
};

}  // namespace

void RegisterSeluCuda(OpRegistry& registry) {
  AddCudaUnary<Selu, SeluGrad>(
      registry, {.type = "selu", .grad_reads = "Out", .attributes = {"scale", "alpha"}});
}

}  // namespace skiff
