// reciprocal: Out = 1 / X. Source: Fluid's reciprocal.
//
// X@GRAD = -Out@GRAD * Out^2.
#include "operators/elementwise/kernels/unary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/reciprocal.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

struct Reciprocal {
  template <class D, class V>
  V operator()(D d, V x) const {
    return hn::Div(hn::Set(d, 1.0f), x);
  }
  template <typename T>
  T operator()(T x) const {
    return T{1} / x;
  }
};

struct ReciprocalGrad {
  template <class D, class V>
  V operator()(D, V out, V dout) const {
    return hn::Neg(hn::Mul(dout, hn::Mul(out, out)));
  }
  template <typename T>
  T operator()(T out, T dout) const {
    return -(dout * (out * out));
  }
};

UnaryFloatLoops ReciprocalLoops(const OpContext& context) {
  return UnaryLoops<Reciprocal, ReciprocalGrad>(context);
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(ReciprocalLoops);

void RegisterReciprocal(OpRegistry& registry) {
  RegisterUnary<HWY_NAMESPACE::Reciprocal, HWY_NAMESPACE::ReciprocalGrad>(
      registry,
      {.type = "reciprocal",
       .doc = "Out = 1 / X.",
       .grad_doc = "X@GRAD = -Out@GRAD * Out^2.",
       .grad_reads = "Out",
       .zero_preserving = false,
       .grad_zero_preserving = false},
      [](const OpContext& context) { return HWY_DYNAMIC_DISPATCH(ReciprocalLoops)(context); });
}

}  // namespace skiff
#endif  // HWY_ONCE
