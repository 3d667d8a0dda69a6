// sigmoid: Out = 1 / (1 + exp(-X)). Source: Fluid's sigmoid.
//
// X@GRAD = Out@GRAD * Out * (1 - Out).
#include <cmath>

#include "operators/elementwise/kernels/unary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/sigmoid.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

struct Sigmoid {
  template <class D, class V>
  V operator()(D d, V x) const {
    const V one = hn::Set(d, 1.0f);
    // Far below 0 the exponential overflows to infinity, and the quotient is 0, as it should be.
    return hn::Div(one, hn::Add(one, ExpOf(d, hn::Neg(x))));
  }
  template <typename T>
  T operator()(T x) const {
    return T{1} / (T{1} + std::exp(-x));
  }
};

struct SigmoidGrad {
  template <class D, class V>
  V operator()(D d, V out, V dout) const {
    return hn::Mul(dout, hn::Mul(out, hn::Sub(hn::Set(d, 1.0f), out)));
  }
  template <typename T>
  T operator()(T out, T dout) const {
    return dout * (out * (T{1} - out));
  }
};

UnaryFloatLoops SigmoidLoops(const OpContext& context) {
  return UnaryLoops<Sigmoid, SigmoidGrad>(context);
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(SigmoidLoops);

void RegisterSigmoid(OpRegistry& registry) {
  RegisterUnary<HWY_NAMESPACE::Sigmoid, HWY_NAMESPACE::SigmoidGrad>(
      registry,
      {.type = "sigmoid",
       .doc = "Out = 1 / (1 + exp(-X)).",
       .grad_doc = "X@GRAD = Out@GRAD * Out * (1 - Out).",
       .grad_reads = "Out",
       .zero_preserving = false,
       .grad_zero_preserving = true},
      [](const OpContext& context) { return HWY_DYNAMIC_DISPATCH(SigmoidLoops)(context); });
}

}  // namespace skiff
#endif  // HWY_ONCE
