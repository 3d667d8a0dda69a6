// finite.h for vectors of float32.
//
// Included once per instruction set, through Highway's foreach_target.
#include <limits>

#include "hwy/highway.h"
#include "operators/common/finite.h"

#if defined(SKIFF_OPERATORS_COMMON_FINITE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SKIFF_OPERATORS_COMMON_FINITE_INL_H_
#undef SKIFF_OPERATORS_COMMON_FINITE_INL_H_
#else
#define SKIFF_OPERATORS_COMMON_FINITE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The functions for numbers.
using skiff::AboveMinusInfinity;
using skiff::NearestFinite;

// Return x, but no less (no more) than the bound. NaN stays NaN.
template <class D, class V>
HWY_INLINE V AtLeast(D d, float bound, V x) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  // There, hn::Max and hn::Min make the bound of NaN.
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, bound)), hn::Set(d, bound), x);
#else
  return hn::Max(hn::Set(d, bound), x);  // in this order: NaN stays
#endif
}

template <class D, class V>
HWY_INLINE V AtMost(D d, float bound, V x) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  return hn::IfThenElse(hn::Gt(x, hn::Set(d, bound)), hn::Set(d, bound), x);
#else
  return hn::Min(hn::Set(d, bound), x);
#endif
}

template <class D, class V>
HWY_INLINE V AboveMinusInfinity(D d, V x) {
  return AtLeast(d, std::numeric_limits<float>::lowest(), x);
}

template <class D, class V>
HWY_INLINE V NearestFinite(D d, V x) {
  return AtMost(d, std::numeric_limits<float>::max(), AboveMinusInfinity(d, x));
}

}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SKIFF_OPERATORS_COMMON_FINITE_INL_H_
