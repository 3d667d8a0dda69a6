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

// Comparisons, since hn::Max and hn::Min may turn NaN into a bound.
template <class D, class V>
HWY_INLINE V AboveMinusInfinity(D d, V x) {
  const V lowest = hn::Set(d, std::numeric_limits<float>::lowest());
  return hn::IfThenElse(hn::Lt(x, lowest), lowest, x);
}

template <class D, class V>
HWY_INLINE V NearestFinite(D d, V x) {
  const V highest = hn::Set(d, std::numeric_limits<float>::max());
  return hn::IfThenElse(hn::Gt(x, highest), highest, AboveMinusInfinity(d, x));
}

}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SKIFF_OPERATORS_COMMON_FINITE_INL_H_
