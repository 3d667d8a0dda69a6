// elementwise_sub: Out = X - Y. Source: Fluid's elementwise_sub. Integers wrap around.
//
// X@GRAD = Out@GRAD, Y@GRAD = -Out@GRAD.
#include "operators/common/integer.h"
#include "operators/elementwise/kernels/binary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/elementwise_sub.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

struct Sub {
  template <class D, class V>
  V operator()(D, V x, V y) const {
    return hn::Sub(x, y);
  }
  template <typename T>
  T operator()(T x, T y) const {
    return WrappingSub(x, y);
  }
};

struct SubYGrad {
  template <class D, class V>
  V operator()(D d, V, V, V, V dout) const {
    // Not Neg, which would turn 0 into -0.
    return hn::Sub(hn::Zero(d), dout);
  }
  template <typename T>
  T operator()(T, T, T, T dout) const {
    return T{0} - dout;
  }
};

BinaryFloatLoops SubLoops() { return BinaryLoops<Sub, PassGradient, SubYGrad>(); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(SubLoops);

void RegisterElementwiseSub(OpRegistry& registry) {
  const BinaryFacts facts = {.type = "elementwise_sub",
                             .doc = "Out = X - Y.",
                             .zero_preserving = true,
                             .grad_doc = "X@GRAD = Out@GRAD, Y@GRAD = -Out@GRAD.",
                             .no_gradient_reason = "",
                             .grad_zero_preserving = true};
  RegisterBinary<HWY_NAMESPACE::Sub, PassGradient, HWY_NAMESPACE::SubYGrad, int32_t, int64_t>(
      registry, facts, [] { return HWY_DYNAMIC_DISPATCH(SubLoops)(); });
}

}  // namespace skiff
#endif  // HWY_ONCE
