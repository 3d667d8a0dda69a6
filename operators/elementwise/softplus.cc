// softplus: Out = log(1 + exp(beta * X)) / beta, or X where beta * X > threshold. Source: Fluid's
// softplus.
//
// X@GRAD = Out@GRAD / (1 + exp(-beta * X)), or Out@GRAD where beta * X > threshold.
#include <cmath>

#include "operators/elementwise/kernels/unary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/softplus.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

struct Softplus {
  explicit Softplus(const OpContext& context)
      : beta(context.Attr<float>("beta")), threshold(context.Attr<float>("threshold")) {}

  template <class D, class V>
  V operator()(D d, V x) const {
    const V scaled = hn::Mul(x, hn::Set(d, beta));
    // log(1 + exp(s)) = max(s, 0) + log(1 + exp(-|s|)). In this form nothing overflows, and small
    // results keep their digits.
    const V rest = hn::Log1p(d, ExpOf(d, hn::Neg(hn::Abs(scaled))));
    const V positive = hn::IfThenZeroElse(hn::Lt(scaled, hn::Zero(d)), scaled);
    const V out = hn::Div(hn::Add(positive, rest), hn::Set(d, beta));
    return hn::IfThenElse(hn::Gt(scaled, hn::Set(d, threshold)), x, out);
  }
  template <typename T>
  T operator()(T x) const {
    const T scaled = x * static_cast<T>(beta);
    if (scaled > static_cast<T>(threshold)) return x;
    const T positive = scaled < T{0} ? T{0} : scaled;
    return (positive + std::log1p(std::exp(-std::abs(scaled)))) / static_cast<T>(beta);
  }

  float beta;
  float threshold;
};

struct SoftplusGrad {
  explicit SoftplusGrad(const OpContext& context)
      : beta(context.Attr<float>("beta")), threshold(context.Attr<float>("threshold")) {}

  template <class D, class V>
  V operator()(D d, V x, V dout) const {
    const V scaled = hn::Mul(x, hn::Set(d, beta));
    const V slope = hn::Div(dout, hn::Add(hn::Set(d, 1.0f), ExpOf(d, hn::Neg(scaled))));
    return hn::IfThenElse(hn::Gt(scaled, hn::Set(d, threshold)), dout, slope);
  }
  template <typename T>
  T operator()(T x, T dout) const {
    const T scaled = x * static_cast<T>(beta);
    return scaled > static_cast<T>(threshold) ? dout : dout / (T{1} + std::exp(-scaled));
  }

  float beta;
  float threshold;
};

UnaryFloatLoops SoftplusLoops(const OpContext& context) {
  return UnaryLoops<Softplus, SoftplusGrad>(context);
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(SoftplusLoops);

void RegisterSoftplus(OpRegistry& registry) {
  RegisterUnary<HWY_NAMESPACE::Softplus, HWY_NAMESPACE::SoftplusGrad>(
      registry,
      {.type = "softplus",
       .doc = "Out = log(1 + exp(beta * X)) / beta, or X where beta * X > threshold.",
       .grad_doc =
           "X@GRAD = Out@GRAD / (1 + exp(-beta * X)), or Out@GRAD where beta * X > threshold.",
       .grad_reads = "X",
       .zero_preserving = false,
       .grad_zero_preserving = true,
       .attrs = {{.name = "beta",
                  .type = AttrType::kFloat,
                  .default_value = 1.0f,
                  .doc = "How sharply the curve bends at 0; not 0.",
                  .accepts = [](const Attribute& value) { return std::get<float>(value) != 0; },
                  .expected = "a number other than 0"},
                 {.name = "threshold",
                  .type = AttrType::kFloat,
                  .default_value = 20.0f,
                  .doc = "The value of beta * X above which Out is X."}}},
      [](const OpContext& context) { return HWY_DYNAMIC_DISPATCH(SoftplusLoops)(context); });
}

}  // namespace skiff
#endif  // HWY_ONCE
