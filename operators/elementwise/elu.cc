// elu: Out = X where X >= 0, else alpha * (exp(X) - 1). Source: Fluid's elu, after Clevert,
// Unterthiner, Hochreiter: Fast and Accurate Deep Network Learning by Exponential Linear Units
// (2015).
//
// X@GRAD = Out@GRAD where X > 0, else Out@GRAD * alpha * exp(X). It needs X only, so Out need not
// be kept; Fluid's gradient op takes both.
#include <cmath>

#include "operators/elementwise/kernels/unary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/elu.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

struct Elu {
  explicit Elu(const OpContext& context) : alpha(context.Attr<float>("alpha")) {}

  template <class D, class V>
  V operator()(D d, V x) const {
    // Expm1 keeps the digits of small results.
    const V below = hn::Mul(hn::Set(d, alpha), hn::Expm1(d, x));
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), below, x);
  }
  template <typename T>
  T operator()(T x) const {
    return x < T{0} ? static_cast<T>(alpha) * std::expm1(x) : x;
  }

  float alpha;
};

struct EluGrad {
  explicit EluGrad(const OpContext& context) : alpha(context.Attr<float>("alpha")) {}

  template <class D, class V>
  V operator()(D d, V x, V dout) const {
    const V zero = hn::Zero(d);
    const V slope = hn::Mul(hn::Set(d, alpha), ExpOf(d, x));
    // Adding 0 avoids -0 for gradients of 0, whatever the sign of alpha.
    return hn::IfThenElse(hn::Gt(x, zero), dout, hn::MulAdd(dout, slope, zero));
  }
  template <typename T>
  T operator()(T x, T dout) const {
    return x > T{0} ? dout : T{0} + dout * (static_cast<T>(alpha) * std::exp(x));
  }

  float alpha;
};

UnaryFloatLoops EluLoops(const OpContext& context) { return UnaryLoops<Elu, EluGrad>(context); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(EluLoops);

void RegisterElu(OpRegistry& registry) {
  RegisterUnary<HWY_NAMESPACE::Elu, HWY_NAMESPACE::EluGrad>(
      registry,
      {.type = "elu",
       .doc = "Out = X where X >= 0, else alpha * (exp(X) - 1).",
       .grad_doc = "X@GRAD = Out@GRAD where X > 0, else Out@GRAD * alpha * exp(X).",
       .grad_reads = "X",
       .zero_preserving = true,
       .grad_zero_preserving = true,
       .grad_ignores = "Out",
       .attrs = {{.name = "alpha",
                  .type = AttrType::kFloat,
                  .default_value = 1.0f,
                  .doc = "The limit of -Out far below 0."}}},
      [](const OpContext& context) { return HWY_DYNAMIC_DISPATCH(EluLoops)(context); });
}

}  // namespace skiff
#endif  // HWY_ONCE
