// swish: Out = X / (1 + exp(-X)). Source: Fluid's swish, after Ramachandran, Zoph, Le: Searching
// for Activation Functions (2017).
//
// X@GRAD = Out@GRAD * s * (1 + X * (1 - s)) with s = 1 / (1 + exp(-X)).
#include <cmath>

#include "operators/elementwise/kernels/unary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/swish.cc"
#include "hwy/foreach_target.h"
#include "operators/common/finite-inl.h"
#include "operators/common/simd_math-inl.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

// Where exp(x) is infinite or 0, x may as well be no further.
struct Swish {
  template <class D, class V>
  V operator()(D d, V any) const {
    const V x = AtLeast(d, -kExpReach, any);
    return hn::Div(x, hn::Add(hn::Set(d, 1.0f), hn::Exp(d, hn::Neg(x))));
  }
  template <typename T>
  T operator()(T x) const {
    return AboveMinusInfinity(x) / (T{1} + std::exp(-x));
  }
};

struct SwishGrad {
  template <class D, class V>
  V operator()(D d, V any, V dout) const {
    const V x = AtMost(d, kExpReach, AtLeast(d, -kExpReach, any));
    const V one = hn::Set(d, 1.0f);
    const V sigmoid = hn::Div(one, hn::Add(one, hn::Exp(d, hn::Neg(x))));
    return hn::Mul(hn::Mul(dout, sigmoid), hn::MulAdd(x, hn::Sub(one, sigmoid), one));
  }
  template <typename T>
  T operator()(T x, T dout) const {
    const T sigmoid = T{1} / (T{1} + std::exp(-x));
    return dout * sigmoid * (T{1} + NearestFinite(x) * (T{1} - sigmoid));
  }
};

UnaryFloatLoops SwishLoops(const OpContext& context) {
  return UnaryLoops<Swish, SwishGrad>(context);
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(SwishLoops);

void RegisterSwish(OpRegistry& registry) {
  RegisterUnary<HWY_NAMESPACE::Swish, HWY_NAMESPACE::SwishGrad>(
      registry,
      {.type = "swish",
       .doc = "Out = X / (1 + exp(-X)).",
       .grad_doc = "X@GRAD = Out@GRAD * s * (1 + X * (1 - s)) with s = 1 / (1 + exp(-X)).",
       .grad_reads = "X",
       .zero_preserving = true,
       .grad_zero_preserving = true},
      [](const OpContext& context) { return HWY_DYNAMIC_DISPATCH(SwishLoops)(context); });
}

}  // namespace skiff
#endif  // HWY_ONCE
