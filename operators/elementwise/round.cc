// round: Out = the integer nearest to X, halves away from zero. Source: Fluid's round.
//
// X@GRAD = 0, the slope wherever there is one.
#include <cmath>

#include "operators/elementwise/kernels/unary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/round.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

struct Round {
  template <class D, class V>
  V operator()(D d, V x) const {
    // Not 0.5: added to the float just below 0.5, it would round to 1.
    const V nearly_half = hn::Set(d, 0.49999997f);
    return hn::Trunc(hn::Add(x, hn::CopySign(nearly_half, x)));
  }
  template <typename T>
  T operator()(T x) const {
    return std::round(x);
  }
};

UnaryFloatLoops RoundLoops(const OpContext& context) {
  return UnaryLoops<Round, ZeroGradient>(context);
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(RoundLoops);

void RegisterRound(OpRegistry& registry) {
  RegisterUnary<HWY_NAMESPACE::Round, HWY_NAMESPACE::ZeroGradient>(
      registry,
      {.type = "round",
       .doc = "Out = the integer nearest to X, halves away from zero.",
       .grad_doc = "X@GRAD = 0.",
       .grad_reads = "",
       .zero_preserving = true,
       .grad_zero_preserving = true},
      [](const OpContext& context) { return HWY_DYNAMIC_DISPATCH(RoundLoops)(context); });
}

}  // namespace skiff
#endif  // HWY_ONCE
