// CUDA kernels of mish and mish_grad; mish.cc has the formulas.
#include <cmath>
#include <type_traits>

#include "operators/common/finite.h"
#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

// tanh(s(x)) and its derivative; mish.cc has the formula.
template <typename T>
struct MishCurve {
  __device__ MishCurve(T x, T threshold) {
    // Beyond it, tanh rounds to 1, and n would overflow for large x.
    constexpr T kFlat = std::is_same_v<T, float> ? 20 : 40;
    limited = x > kFlat ? kFlat : AboveMinusInfinity(x);
    const T e = std::exp(limited);
    const bool is_line = x > threshold;
    const T n = is_line ? e * e - T{1} : e * (e + T{2});
    tanh = n / (n + T{2});
    slope = T{4} * (n + T{1}) / ((n + T{2}) * (n + T{2})) * (is_line ? T{1} : e / (T{1} + e));
  }
  T tanh;
  T slope;
  T limited;
};

struct Mish {
  explicit Mish(const UnaryNumbers& numbers) : threshold(numbers.values[0]) {}

  template <typename T>
  __device__ T operator()(T x) const {
    return AboveMinusInfinity(x) * MishCurve<T>(x, static_cast<T>(threshold)).tanh;
  }

  float threshold;
};

struct MishGrad {
  explicit MishGrad(const UnaryNumbers& numbers) : threshold(numbers.values[0]) {}

  template <typename T>
  __device__ T operator()(T x, T dout) const {
    const MishCurve<T> curve(x, static_cast<T>(threshold));
    return dout * (curve.tanh + curve.limited * curve.slope);
  }

  float threshold;
};

}  // namespace

void RegisterMishCuda(OpRegistry& registry) {
  AddCudaUnary<Mish, MishGrad>(registry,
                               {.type = "mish", .grad_reads = "X", .attributes = {"threshold"}});
}

}  // namespace skiff
