// CUDA kernels of gelu and gelu_grad; gelu.cc has the formulas.
#include <cmath>

#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

template <typename T>
__device__ T NormalBelow(T x) {
  return T{0.5} * std::erfc(x * static_cast<T>(-0.70710678118654752));
}

// (1 + tanh(u)) / 2 with u = x * (kLinear + kCubic * x^2), and its slope.
template <typename T>
struct TanhCurve {
  __device__ explicit TanhCurve(T x) {
    constexpr double kLinear = 0.79788456080286536;  // sqrt(2 / pi)
    constexpr double kCubic = kLinear * 0.044715;
    // A slope of 0 times an infinite square would be NaN.
    const T square = x * x < T{1e4} ? x * x : T{1e4};
    const T u = x * (static_cast<T>(kLinear) + static_cast<T>(kCubic) * square);
    value = T{1} / (T{1} + std::exp(T{-2} * u));
    slope = value * (T{1} - value) *
            (static_cast<T>(2 * kLinear) + static_cast<T>(6 * kCubic) * square);
  }
  T value;
  T slope;
};

struct Gelu {
  explicit Gelu(const UnaryNumbers& numbers) : approximate(numbers.values[0] != 0) {}

  template <typename T>
  __device__ T operator()(T x) const {
    if (approximate) return x * TanhCurve<T>(x).value;
    return x * NormalBelow(x);
  }

  bool approximate;
};

struct GeluGrad {
  explicit GeluGrad(const UnaryNumbers& numbers) : approximate(numbers.values[0] != 0) {}

  template <typename T>
  __device__ T operator()(T x, T dout) const {
    if (approximate) {
      const TanhCurve<T> curve(x);
      return dout * (curve.value + x * curve.slope);
    }
    const T density = static_cast<T>(0.39894228040143268) * std::exp(T{-0.5} * x * x);
    return dout * (NormalBelow(x) + x * density);
  }

  bool approximate;
};

}  // namespace

void RegisterGeluCuda(OpRegistry& registry) {
  AddCudaUnary<Gelu, GeluGrad>(registry,
                               {.type = "gelu", .grad_reads = "X", .attributes = {"approximate"}});
}

}  // namespace skiff
