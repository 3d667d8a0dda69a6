// Vectors of at most 16 floats, the lanes of the largest channel block.
//
// Included once per instruction set, through Highway's foreach_target.
#include <cstdint>

#include "hwy/highway.h"

#if defined(SKIFF_OPERATORS_COMMON_CPU_FLOAT_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SKIFF_OPERATORS_COMMON_CPU_FLOAT_LANES_INL_H_
#undef SKIFF_OPERATORS_COMMON_CPU_FLOAT_LANES_INL_H_
#else
#define SKIFF_OPERATORS_COMMON_CPU_FLOAT_LANES_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, 16>;
using FloatVector = hn::Vec<FloatTag>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(FloatTag()));

}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SKIFF_OPERATORS_COMMON_CPU_FLOAT_LANES_INL_H_
