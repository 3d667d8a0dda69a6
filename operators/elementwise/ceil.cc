// ceil: Out = the least integer that is not less than X. Source: Fluid's ceil.
//
// X@GRAD = 0, the slope wherever there is one.
#include <cmath>

#include "operators/elementwise/kernels/unary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/ceil.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

struct Ceil {
  template <class D, class V>
  V operator()(D d, V x) const {
    // Without vectors, Highway turns 0 into -0; adding 0 undoes that.
    return hn::Add(hn::Ceil(x), hn::Zero(d));
  }
  template <typename T>
  T operator()(T x) const {
    return std::ceil(x);
  }
};

UnaryFloatLoops CeilLoops(const OpContext& context) {
  return UnaryLoops<Ceil, ZeroGradient>(context);
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(CeilLoops);

void RegisterCeil(OpRegistry& registry) {
  RegisterUnary<HWY_NAMESPACE::Ceil, HWY_NAMESPACE::ZeroGradient>(
      registry,
      {.type = "ceil",
       .doc = "Out = the least integer that is not less than X.",
       .grad_doc = "X@GRAD = 0.",
       .grad_reads = "",
       .zero_preserving = true,
       .grad_zero_preserving = true},
      [](const OpContext& context) { return HWY_DYNAMIC_DISPATCH(CeilLoops)(context); });
}

}  // namespace skiff
#endif  // HWY_ONCE
