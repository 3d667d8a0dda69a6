// gelu on CUDA, as the ops that have it compute it; elementwise/gelu.cc has the formulas.
#pragma once

#include <cuda_runtime.h>

#include <cmath>

#include "operators/common/finite.h"

namespace skiff {

// gelu(x) = x · below, and its slope = below + x · density.
template <typename T>
struct GeluCurve {
  __device__ GeluCurve(T x, bool approximate) : x(x) {
    if (approximate) {
      constexpr double kLinear = 0.79788456080286536;  // sqrt(2 / pi)
      constexpr double kCubic = kLinear * 0.044715;
      // A slope of 0 times an infinite square would be NaN.
      const T square = x * x > T{1e4} ? T{1e4} : x * x;
      const T u = x * (static_cast<T>(kLinear) + static_cast<T>(kCubic) * square);
      // (1 + tanh(u)) / 2
      below = T{1} / (T{1} + std::exp(T{-2} * u));
      density = below * (T{1} - below) *
                (static_cast<T>(2 * kLinear) + static_cast<T>(6 * kCubic) * square);
    } else {
      below = T{0.5} * std::erfc(x * static_cast<T>(-0.70710678118654752));
      density = static_cast<T>(0.39894228040143268) * std::exp(T{-0.5} * x * x);
    }
  }

  __device__ T Value() const { return AboveMinusInfinity(x) * below; }
  __device__ T Slope() const { return below + NearestFinite(x) * density; }

  T x;
  T below;
  T density;
};

}  // namespace skiff
