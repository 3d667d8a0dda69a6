// CUDA kernels of softplus and softplus_grad; softplus.cc has the formulas.
#include <cmath>

#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

struct Softplus {
  explicit Softplus(const UnaryNumbers& numbers)
      : beta(numbers.values[0]), threshold(numbers.values[1]) {}

  template <typename T>
  __device__ T operator()(T x) const {
    const T scaled = x * static_cast<T>(beta);
    if (scaled > static_cast<T>(threshold)) return x;
    // log(1 + exp(s)) in a form in which nothing overflows.
    const T positive = scaled < T{0} ? T{0} : scaled;
    return (positive + std::log1p(std::exp(-std::abs(scaled)))) / static_cast<T>(beta);
  }

  float beta;
  float threshold;
};

struct SoftplusGrad {
  explicit SoftplusGrad(const UnaryNumbers& numbers)
      : beta(numbers.values[0]), threshold(numbers.values[1]) {}

  template <typename T>
  __device__ T operator()(T x, T dout) const {
    const T scaled = x * static_cast<T>(beta);
    return scaled > static_cast<T>(threshold) ? dout : dout / (T{1} + std::exp(-scaled));
  }

  float beta;
  float threshold;
};

}  // namespace

void RegisterSoftplusCuda(OpRegistry& registry) {
  AddCudaUnary<Softplus, SoftplusGrad>(
      registry, {.type = "softplus", .grad_reads = "X", .attributes = {"beta", "threshold"}});
}

}  // namespace skiff
