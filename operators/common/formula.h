// The functions in which formulas of operators are written. A formula is stated once, as a template
// of the kind of number V: float32, float64 or an integer, on the CPU or a device, and vectors of
// float32 (formula-inl.h). V{2} is a constant, x < y a condition.
//
// Formulas are constexpr, so that a device may run them, too.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "operators/common/finite.h"
#include "operators/common/integer.h"

namespace skiff {

// `yes` where the condition holds, else `no`.
template <typename T>
constexpr T Where(bool condition, T yes, T no) {
  return condition ? yes : no;
}
// The same of `yes()` and `no()`, for what takes long: numbers compute only one of the two.
template <class Yes, class No>
constexpr auto WhereLazily(bool condition, const Yes& yes, const No& no) {
  return condition ? yes() : no();
}
// x where the condition holds, else 0.
template <typename T>
constexpr T OnlyWhere(bool condition, T x) {
  return condition ? x : T{0};
}
// 0 where the condition holds, else x. ZeroWhere(x < V{0}, x) keeps NaN, which a maximum with 0 may
// not.
template <typename T>
constexpr T ZeroWhere(bool condition, T x) {
  return condition ? T{0} : x;
}

// a * b + c and c - a * b, with one rounding or two, as the instruction set has it.
template <typename T>
constexpr T MulAdd(T a, T b, T c) {
  return a * b + c;
}
template <typename T>
constexpr T NegMulAdd(T a, T b, T c) {
  return c - a * b;
}

// The absolute value of an integer that has none wraps around.
template <typename T>
constexpr T Abs(T x) {
  if constexpr (std::is_integral_v<T>) {
    return x < T{0} ? WrappingSub(T{0}, x) : x;
  } else {
    return std::abs(x);
  }
}

// Of any number.
template <typename T>
constexpr T Exp(T x) {
  return std::exp(x);
}
template <typename T>
constexpr T Log(T x) {
  return std::log(x);
}
// Of vectors, for finite numbers alone, Expm1 up to the reach of the exponential (below), and Log1p
// above -1.
template <typename T>
constexpr T Expm1(T x) {
  return std::expm1(x);
}
template <typename T>
constexpr T Log1p(T x) {
  return std::log1p(x);
}
// Of any number.
template <typename T>
constexpr T Erf(T x) {
  return std::erf(x);
}
template <typename T>
constexpr T Tanh(T x) {
  return std::tanh(x);
}
template <typename T>
constexpr T Sqrt(T x) {
  return std::sqrt(x);
}
template <typename T>
constexpr T Floor(T x) {
  return std::floor(x);
}
template <typename T>
constexpr T Ceil(T x) {
  return std::ceil(x);
}
template <typename T>
constexpr T Trunc(T x) {
  return std::trunc(x);
}
// Halves away from zero.
template <typename T>
constexpr T Round(T x) {
  return std::round(x);
}
// For numbers alone, not for vectors.
template <typename T>
constexpr T Sin(T x) {
  return std::sin(x);
}
template <typename T>
constexpr T Cos(T x) {
  return std::cos(x);
}

// exp(x) for x up to the reach, kExpReach (simd_math-inl.h), beyond which the exponential of
// float32 is infinite. Of vectors, faster than Exp, but anything may become of NaN.
template <typename T>
constexpr T QuickExp(T x) {
  return std::exp(x);
}
// Return x, but at most the reach, and at least its opposite. NaN stays NaN. The reach of numbers
// is the largest finite number: an infinity becomes finite.
template <typename T>
constexpr T BelowExpReach(T x) {
  return AtMost(std::numeric_limits<T>::max(), x);
}
template <typename T>
constexpr T AboveMinusExpReach(T x) {
  return AboveMinusInfinity(x);
}

// The normal distribution: its integral up to a point, and its density there.
template <class V>
struct Normal {
  V below;
  V density;
};

inline constexpr double kInverseSqrt2 = 0.70710678118654752;
inline constexpr double kInverseSqrt2Pi = 0.39894228040143268;

// Of vectors, anything may become of NaN.
template <typename T>
constexpr Normal<T> NormalAt(T x) {
  return {.below = T{0.5} * std::erfc(x * static_cast<T>(-kInverseSqrt2)),
          .density = static_cast<T>(kInverseSqrt2Pi) * std::exp(T{-0.5} * x * x)};
}

}  // namespace skiff
