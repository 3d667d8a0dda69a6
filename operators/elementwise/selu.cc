// selu: Out = scale * X where X > 0, else scale * alpha * (exp(X) - 1). Source: Fluid's selu, after
// Klambauer et al.: Self-Normalizing Neural Networks (2017), whose constants are the defaults.
//
// X@GRAD = Out@GRAD * scale where Out > 0, else Out@GRAD * (Out + scale * alpha). Out must have the
// sign of X, so scale must be above 0, and alpha at least 0.
#include <cmath>

#include "operators/elementwise/kernels/unary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/selu.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

struct Selu {
  explicit Selu(const OpContext& context)
      : scale(context.Attr<float>("scale")), alpha(context.Attr<float>("alpha")) {}

  template <class D, class V>
  V operator()(D d, V x) const {
    // Expm1 keeps the digits of small results.
    const V below = hn::Mul(hn::Set(d, scale * alpha), hn::Expm1(d, x));
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), below, hn::Mul(hn::Set(d, scale), x));
  }
  template <typename T>
  T operator()(T x) const {
    const T factor = static_cast<T>(scale);
    return x < T{0} ? factor * static_cast<T>(alpha) * std::expm1(x) : factor * x;
  }

  float scale;
  float alpha;
};

struct SeluGrad {
  explicit SeluGrad(const OpContext& context)
      : scale(context.Attr<float>("scale")), alpha(context.Attr<float>("alpha")) {}

  template <class D, class V>
  V operator()(D d, V out, V dout) const {
    const V slope = hn::IfThenElse(hn::Gt(out, hn::Zero(d)), hn::Set(d, scale),
                                   hn::Add(out, hn::Set(d, scale * alpha)));
    return hn::Mul(dout, slope);
  }
  template <typename T>
  T operator()(T out, T dout) const {
    const T factor = static_cast<T>(scale);
    return dout * (out > T{0} ? factor : out + factor * static_cast<T>(alpha));
  }

  float scale;
  float alpha;
};

UnaryFloatLoops SeluLoops(const OpContext& context) { return UnaryLoops<Selu, SeluGrad>(context); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(SeluLoops);

void RegisterSelu(OpRegistry& registry) {
  RegisterUnary<HWY_NAMESPACE::Selu, HWY_NAMESPACE::SeluGrad>(
      registry,
      {.type = "selu",
       .doc = "Out = scale * X where X > 0, else scale * alpha * (exp(X) - 1).",
       .grad_doc =
           "X@GRAD = Out@GRAD * scale where Out > 0, else Out@GRAD * (Out + scale * alpha).",
       .grad_reads = "Out",
       .zero_preserving = true,
       .grad_zero_preserving = true,
       .attrs = {{.name = "scale",
                  .type = AttrType::kFloat,
                  .default_value = 1.0507009873554805f,
                  .doc = "The slope where X is positive.",
                  .accepts = [](const Attribute& value) { return std::get<float>(value) > 0; },
                  .expected = "more than 0"},
                 {.name = "alpha",
                  .type = AttrType::kFloat,
                  .default_value = 1.6732632423543772f,
                  .doc = "The limit of -Out / scale far below 0.",
                  .accepts = [](const Attribute& value) { return std::get<float>(value) >= 0; },
                  .expected = "at least 0"}}},
      [](const OpContext& context) { return HWY_DYNAMIC_DISPATCH(SeluLoops)(context); });
}

}  // namespace skiff
#endif  // HWY_ONCE
