// Exponential, logarithm, hyperbolic tangent and error function of float32 vectors, defined for
// every input: Highway's own leave infinities, NaN and overflow undefined.
//
// Included once per instruction set, through Highway's foreach_target.
#include <limits>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

#if defined(SKIFF_OPERATORS_COMMON_CPU_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SKIFF_OPERATORS_COMMON_CPU_SIMD_MATH_INL_H_
#undef SKIFF_OPERATORS_COMMON_CPU_SIMD_MATH_INL_H_
#else
#define SKIFF_OPERATORS_COMMON_CPU_SIMD_MATH_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Highway's Exp is exact to a unit in the last place up to here, which is beyond overflow: exp(x)
// is infinite and exp(-x) is 0. It treats NaN as a small number.
constexpr float kExpReach = 104.0f;

template <class D, class V>
HWY_INLINE V ExpOf(D d, V x) {
  const V exp = hn::Exp(d, hn::Min(x, hn::Set(d, kExpReach)));
  return hn::IfThenElse(hn::IsNaN(x), x, exp);
}

// exp(x) for float32 x <= 0, in about half the instructions: exact to two units in the last place;
// 0 where that is below the smallest normal number. NaN stays NaN. The polynomial is that of expf
// in Moshier's Cephes.
template <class D, class V>
HWY_INLINE V ExpOfNegative(D d, V x) {
  const hn::RebindToSigned<D> d_int;
  const V lowest = hn::Set(d, -87.33654f);
  const V bounded = hn::Max(lowest, x);  // in this order: NaN stays
  // Adding 1.5 · 2^23 rounds to a whole number n; 127 more makes the low bits the exponent of 2^n.
  const V magic = hn::Set(d, 12582912.0f + 127.0f);
  const V shifted = hn::MulAdd(bounded, hn::Set(d, 1.44269504f), magic);
  const V n = hn::Sub(shifted, magic);
  const V power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(d_int, shifted)));
  // ln 2 in two parts, of which the first is exact times n.
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), bounded);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  V p = hn::MulAdd(hn::Set(d, 1.9875691500e-4f), r, hn::Set(d, 1.3981999507e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 5.0000001201e-1f));
  p = hn::Add(hn::MulAdd(p, hn::Mul(r, r), r), hn::Set(d, 1.0f));
  return hn::IfThenZeroElse(hn::Lt(x, lowest), hn::Mul(p, power));
}

// tanh(x) for float32, in fewer instructions than hn::Tanh: exact to six units in the last place.
// NaN stays NaN. Up to 9.011, x · p(x²) / q(x²) has a relative error of 5.8e-8 before rounding; p
// and q were fitted in linear problems with the weights of Sanathanan and Koerner (1963) and of
// Lawson (1961). Beyond, the nearest float32 is 1.
template <class D, class V>
HWY_INLINE V QuickTanh(D d, V x) {
  const V u = hn::Mul(x, x);
  const V one = hn::Set(d, 1.0f);
  V p = hn::MulAdd(hn::Set(d, 1.33351792e-8f), u, hn::Set(d, 2.05950892e-5f));
  p = hn::MulAdd(p, u, hn::Set(d, 3.49474000e-3f));
  p = hn::MulAdd(p, u, hn::Set(d, 1.33803114e-1f));
  p = hn::MulAdd(p, u, one);
  V q = hn::MulAdd(hn::Set(d, 7.76860588e-7f), u, hn::Set(d, 3.28424649e-4f));
  q = hn::MulAdd(q, u, hn::Set(d, 2.58737579e-2f));
  q = hn::MulAdd(q, u, hn::Set(d, 4.67136264e-1f));
  q = hn::MulAdd(q, u, one);
  const V ratio = hn::Div(hn::Mul(x, p), q);
  const auto is_one = hn::Or(hn::Gt(hn::Abs(x), hn::Set(d, 9.011f)), hn::Gt(hn::Abs(ratio), one));
  return hn::IfThenElse(is_one, hn::CopySign(one, x), ratio);
}

// erf(x) for float32. NaN stays NaN, and -0 stays -0. Up to 3.92, x · p(x²) / q(x²) has a relative
// error of 5.4e-8 before the sums round; p and q were fitted as those of QuickTanh. Beyond, the
// nearest float32 is 1.
template <class D, class V>
HWY_INLINE V ErfOf(D d, V x) {
  const V u = hn::Mul(x, x);
  const V one = hn::Set(d, 1.0f);
  V p = hn::MulAdd(hn::Set(d, 1.87655564e-6f), u, hn::Set(d, 2.85823859e-4f));
  p = hn::MulAdd(p, u, hn::Set(d, 4.14582621e-3f));
  p = hn::MulAdd(p, u, hn::Set(d, 5.39066680e-2f));
  p = hn::MulAdd(p, u, hn::Set(d, 2.00303495e-1f));
  p = hn::MulAdd(p, u, hn::Set(d, 1.12837911f));
  V q = hn::MulAdd(hn::Set(d, 3.63370818e-5f), u, hn::Set(d, 1.24029303e-3f));
  q = hn::MulAdd(q, u, hn::Set(d, 1.57404710e-2f));
  q = hn::MulAdd(q, u, hn::Set(d, 1.18062153e-1f));
  q = hn::MulAdd(q, u, hn::Set(d, 5.10846317e-1f));
  q = hn::MulAdd(q, u, one);
  const V ratio = hn::Div(hn::Mul(x, p), q);
  const auto is_one = hn::Or(hn::Gt(hn::Abs(x), hn::Set(d, 3.92f)), hn::Gt(hn::Abs(ratio), one));
  return hn::IfThenElse(is_one, hn::CopySign(one, x), ratio);
}

// Highway's Log requires finite numbers above 0.
template <class D, class V>
HWY_INLINE V LogOf(D d, V x) {
  const V zero = hn::Zero(d);
  const V infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  const V nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
  const V finite = hn::IfThenElse(hn::Lt(x, infinity), hn::Log(d, x), infinity);
  const V outside = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), nan);
  return hn::IfThenElse(hn::Gt(x, zero), finite, outside);
}

}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SKIFF_OPERATORS_COMMON_CPU_SIMD_MATH_INL_H_
