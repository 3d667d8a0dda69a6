// floor: Out = the largest integer that is not greater than X. Source: Fluid's floor.
//
// X@GRAD = 0, the slope wherever there is one.
#include <cmath>

#include "operators/elementwise/kernels/unary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/floor.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

struct Floor {
  template <class D, class V>
  V operator()(D, V x) const {
    return hn::Floor(x);
  }
  template <typename T>
  T operator()(T x) const {
    return std::floor(x);
  }
};

UnaryFloatLoops FloorLoops(const OpContext& context) {
  return UnaryLoops<Floor, ZeroGradient>(context);
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(FloorLoops);

void RegisterFloor(OpRegistry& registry) {
  RegisterUnary<HWY_NAMESPACE::Floor, HWY_NAMESPACE::ZeroGradient>(
      registry,
      {.type = "floor",
       .doc = "Out = the largest integer that is not greater than X.",
       .grad_doc = "X@GRAD = 0.",
       .grad_reads = "",
       .zero_preserving = true,
       .grad_zero_preserving = true},
      [](const OpContext& context) { return HWY_DYNAMIC_DISPATCH(FloorLoops)(context); });
}

}  // namespace skiff
#endif  // HWY_ONCE
