// rsqrt: Out = 1 / sqrt(X). Source: Fluid's rsqrt.
//
// X@GRAD = -Out@GRAD * Out^3 / 2.
#include <cmath>

#include "operators/elementwise/kernels/unary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/rsqrt.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

struct Rsqrt {
  template <class D, class V>
  V operator()(D d, V x) const {
    return hn::Div(hn::Set(d, 1.0f), hn::Sqrt(x));
  }
  template <typename T>
  T operator()(T x) const {
    return T{1} / std::sqrt(x);
  }
};

struct RsqrtGrad {
  template <class D, class V>
  V operator()(D d, V out, V dout) const {
    return hn::Mul(hn::Mul(hn::Set(d, -0.5f), dout), hn::Mul(out, hn::Mul(out, out)));
  }
  template <typename T>
  T operator()(T out, T dout) const {
    return T{-0.5} * dout * (out * out * out);
  }
};

UnaryFloatLoops RsqrtLoops(const OpContext& context) {
  return UnaryLoops<Rsqrt, RsqrtGrad>(context);
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(RsqrtLoops);

void RegisterRsqrt(OpRegistry& registry) {
  RegisterUnary<HWY_NAMESPACE::Rsqrt, HWY_NAMESPACE::RsqrtGrad>(
      registry,
      {.type = "rsqrt",
       .doc = "Out = 1 / the square root of X.",
       .grad_doc = "X@GRAD = -Out@GRAD * Out^3 / 2.",
       .grad_reads = "Out",
       .zero_preserving = false,
       .grad_zero_preserving = false},
      [](const OpContext& context) { return HWY_DYNAMIC_DISPATCH(RsqrtLoops)(context); });
}

}  // namespace skiff
#endif  // HWY_ONCE
