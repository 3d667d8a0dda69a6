// softsign: Out = X / (1 + |X|). Source: Fluid's softsign.
//
// X@GRAD = Out@GRAD / (1 + |X|)^2.
#include <cmath>

#include "operators/elementwise/kernels/unary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/softsign.cc"
#include "hwy/foreach_target.h"
#include "operators/common/finite-inl.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

struct Softsign {
  template <class D, class V>
  V operator()(D d, V any) const {
    const V x = NearestFinite(d, any);
    return hn::Div(x, hn::Add(hn::Set(d, 1.0f), hn::Abs(x)));
  }
  template <typename T>
  T operator()(T any) const {
    const T x = NearestFinite(any);
    return x / (T{1} + std::abs(x));
  }
};

struct SoftsignGrad {
  template <class D, class V>
  V operator()(D d, V x, V dout) const {
    const V below = hn::Add(hn::Set(d, 1.0f), hn::Abs(x));
    return hn::Div(dout, hn::Mul(below, below));
  }
  template <typename T>
  T operator()(T x, T dout) const {
    const T below = T{1} + std::abs(x);
    return dout / (below * below);
  }
};

UnaryFloatLoops SoftsignLoops(const OpContext& context) {
  return UnaryLoops<Softsign, SoftsignGrad>(context);
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(SoftsignLoops);

void RegisterSoftsign(OpRegistry& registry) {
  RegisterUnary<HWY_NAMESPACE::Softsign, HWY_NAMESPACE::SoftsignGrad>(
      registry,
      {.type = "softsign",
       .doc = "Out = X / (1 + |X|).",
       .grad_doc = "X@GRAD = Out@GRAD / (1 + |X|)^2.",
       .grad_reads = "X",
       .zero_preserving = true,
       .grad_zero_preserving = true},
      [](const OpContext& context) { return HWY_DYNAMIC_DISPATCH(SoftsignLoops)(context); });
}

}  // namespace skiff
#endif  // HWY_ONCE
