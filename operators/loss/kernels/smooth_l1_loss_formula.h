// The formulas of smooth_l1_loss, which smooth_l1_loss.cc states.
#pragma once

#include <cmath>
#include <cstdint>

#include "framework/op/registry.h"

namespace skiff {

// The formulas of element i in a run.
template <typename T>
struct SmoothL1Elements {
  constexpr T Difference(T x, T y, int64_t i) const {
    const T difference = x - y;
    return inside == nullptr ? difference : inside[i] * difference;
  }
  constexpr T Loss(T d, int64_t i) const {
    const T size = std::abs(d);
    const T loss = size < bend ? T{0.5} * square * d * d : size - T{0.5} * bend;
    return outside == nullptr ? loss : outside[i] * loss;
  }
  // The gradient of X, given that of the loss.
  constexpr T Slope(T dloss, T d, int64_t i) const {
    const T sign = d < T{0} ? T{-1} : T{1};
    T slope = dloss * (std::abs(d) < bend ? square * d : sign);
    if (inside != nullptr) slope *= inside[i];
    if (outside != nullptr) slope *= outside[i];
    return slope;
  }

  T square;
  T bend;           // where the parabola becomes a line
  const T* inside;  // weights; 1 if nullptr
  const T* outside;
};

// What the kernels of the op and of its gradient have in common.
template <typename T>
class SmoothL1Settings {
 public:
  explicit SmoothL1Settings(const OpContext& context)
      : sigma_(static_cast<T>(context.Attr<float>("sigma"))),
        inside_(context, "InsideWeight"),
        outside_(context, "OutsideWeight") {}

  SmoothL1Elements<T> operator()(const KernelContext& run) const {
    const T square = sigma_ * sigma_;
    return {
        .square = square, .bend = T{1} / square, .inside = inside_(run), .outside = outside_(run)};
  }

 private:
  T sigma_;
  In<T> inside_;
  In<T> outside_;
};

}  // namespace skiff
