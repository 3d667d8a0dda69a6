// gelu and its derivative, of float32 vectors and of scalars of any type: see
// operators/elementwise/gelu.cc for the formulas.
//
// Included once per instruction set, through Highway's foreach_target.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>

#include "hwy/highway.h"
#include "operators/common/finite-inl.h"
#include "operators/common/simd_math-inl.h"

#if defined(SKIFF_OPERATORS_COMMON_GELU_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SKIFF_OPERATORS_COMMON_GELU_INL_H_
#undef SKIFF_OPERATORS_COMMON_GELU_INL_H_
#else
#define SKIFF_OPERATORS_COMMON_GELU_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr double kGeluInverseSqrt2 = 0.70710678118654752;
inline constexpr double kGeluInverseSqrt2Pi = 0.39894228040143268;
// The approximation's argument of tanh is x * (kGeluLinear + kGeluCubic * x^2).
inline constexpr double kGeluLinear = 0.79788456080286536;  // sqrt(2 / pi)
inline constexpr double kGeluCubic = kGeluLinear * 0.044715;

template <class V>
struct Normal {
  V below;  // the integral of the density up to x
  V density;
};

// The tail beyond |x| is exp(-x^2 / 2) * t * q(t) with t = 1 / (1 + 0.3 |x| / sqrt(2)) and a
// polynomial q, fitted to a relative error of 2e-8 for |x| < 14.8, where the tail underflows. As a
// factor of the exponential it keeps its digits on the negative side too, where 1 + erf cancels.
template <class D, class V>
HWY_INLINE Normal<V> NormalDistribution(D d, V x) {
  constexpr float kTail[] = {-0.064779178f, 0.242874169f,   -0.256346184f,
                             0.274119076f,  -0.0475231116f, 0.107557222f,
                             0.0741422847f, 0.0853620093f,  0.0845937019f};
  const V one = hn::Set(d, 1.0f);
  const V t = hn::Div(one, hn::MulAdd(hn::Set(d, 0.212132034f), hn::Abs(x), one));
  V tail = hn::Set(d, kTail[0]);
  for (size_t i = 1; i < std::size(kTail); ++i) tail = hn::MulAdd(tail, t, hn::Set(d, kTail[i]));
  // Without the checks of ExpOf: the argument is at most 0, and whoever multiplies by x keeps NaN.
  const V bell = hn::Exp(d, hn::Mul(hn::Set(d, -0.5f), hn::Mul(x, x)));
  tail = hn::Mul(hn::Mul(tail, t), bell);
  const V below = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail));
  return {below, hn::Mul(bell, hn::Set(d, static_cast<float>(kGeluInverseSqrt2Pi)))};
}

template <typename T>
T NormalBelow(T x) {
  return T{0.5} * std::erfc(x * static_cast<T>(-kGeluInverseSqrt2));
}

// (1 + tanh(u)) / 2 = 1 / (1 + exp(-2u)) of the approximation, and its slope.
template <class V>
struct SigmoidCurve {
  V value;
  V slope;
};

template <class D, class V>
HWY_INLINE SigmoidCurve<V> Curve(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V linear = hn::Set(d, static_cast<float>(2 * kGeluLinear));
  // A slope of 0 times an infinite square would be NaN.
  const V square = hn::Min(hn::Mul(x, x), hn::Set(d, 1e4f));
  const V twice_u =
      hn::Mul(x, hn::MulAdd(hn::Set(d, static_cast<float>(2 * kGeluCubic)), square, linear));
  // Up to where Exp is right. Whoever multiplies by x keeps NaN.
  const V e = hn::Exp(d, hn::Min(hn::Neg(twice_u), hn::Set(d, kExpReach)));
  const V value = hn::Div(one, hn::Add(one, e));
  const V slope_of_twice_u =
      hn::MulAdd(hn::Set(d, static_cast<float>(6 * kGeluCubic)), square, linear);
  return {value, hn::Mul(hn::Mul(value, hn::Sub(one, value)), slope_of_twice_u)};
}

template <typename T>
struct TanhCurve {
  explicit TanhCurve(T x) {
    const T square = std::min(x * x, T{1e4});
    const T u = x * (static_cast<T>(kGeluLinear) + static_cast<T>(kGeluCubic) * square);
    value = T{1} / (T{1} + std::exp(T{-2} * u));
    slope = value * (T{1} - value) *
            (static_cast<T>(2 * kGeluLinear) + static_cast<T>(6 * kGeluCubic) * square);
  }
  T value;
  T slope;
};

// gelu(x), exact or approximated by tanh.
struct GeluFunction {
  template <class D, class V>
  V operator()(D d, V x) const {
    const V factor = AboveMinusInfinity(d, x);
    if (approximate) return hn::Mul(factor, Curve(d, x).value);
    return hn::Mul(factor, NormalDistribution(d, x).below);
  }
  template <typename T>
  T operator()(T x) const {
    const T factor = AboveMinusInfinity(x);
    if (approximate) return factor * TanhCurve<T>(x).value;
    return factor * NormalBelow(x);
  }

  bool approximate;
};

// dout times the derivative of gelu at x.
struct GeluGradFunction {
  template <class D, class V>
  V operator()(D d, V any, V dout) const {
    const V x = NearestFinite(d, any);
    if (approximate) {
      const auto curve = Curve(d, x);
      return hn::Mul(dout, hn::MulAdd(x, curve.slope, curve.value));
    }
    const auto normal = NormalDistribution(d, x);
    return hn::Mul(dout, hn::MulAdd(x, normal.density, normal.below));
  }
  template <typename T>
  T operator()(T any, T dout) const {
    const T x = NearestFinite(any);
    if (approximate) {
      const TanhCurve<T> curve(x);
      return dout * (curve.value + x * curve.slope);
    }
    const T density = static_cast<T>(kGeluInverseSqrt2Pi) * std::exp(T{-0.5} * x * x);
    return dout * (NormalBelow(x) + x * density);
  }

  bool approximate;
};

}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SKIFF_OPERATORS_COMMON_GELU_INL_H_
