// Exponential and logarithm of float32 vectors, defined for every input: Highway's own leave
// infinities, NaN and overflow undefined.
//
// Included once per instruction set, through Highway's foreach_target.
#include <limits>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

#if defined(SKIFF_OPERATORS_COMMON_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SKIFF_OPERATORS_COMMON_SIMD_MATH_INL_H_
#undef SKIFF_OPERATORS_COMMON_SIMD_MATH_INL_H_
#else
#define SKIFF_OPERATORS_COMMON_SIMD_MATH_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Highway's Exp is exact to a unit in the last place up to 104, which is beyond overflow. It treats
// NaN as a small number.
template <class D, class V>
HWY_INLINE V ExpOf(D d, V x) {
  const V exp = hn::Exp(d, hn::Min(x, hn::Set(d, 104.0f)));
  return hn::IfThenElse(hn::IsNaN(x), x, exp);
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

#endif  // SKIFF_OPERATORS_COMMON_SIMD_MATH_INL_H_
