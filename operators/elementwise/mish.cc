// mish: Out = X * tanh(s(X)) with s(x) = log(1 + exp(x)), or s(x) = x above the threshold. Source:
// Fluid's mish, after Misra: Mish (2019).
//
// With e = exp(x), tanh(s) = n / (n + 2), where n = e * (e + 2), or e^2 - 1 above the threshold. So
// no logarithm is needed. X@GRAD = Out@GRAD * (tanh(s) + X * (1 - tanh(s)^2) * s'(X)).
#include <cmath>
#include <type_traits>

#include "operators/elementwise/kernels/unary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/mish.cc"
#include "hwy/foreach_target.h"
#include "operators/common/finite-inl.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

// tanh(s(x)) and its derivative. Beyond kFlat, tanh rounds to 1; x is limited to it because n would
// overflow for large x. The limited x is a number; its product with the derivative is too small to
// change 1.
template <class V>
struct TanhOfSoftplus {
  V tanh;
  V slope;
  V limited;
};

template <class D, class V>
HWY_INLINE TanhOfSoftplus<V> Curve(D d, V x, float threshold) {
  constexpr float kFlat = 20.0f;
  const V one = hn::Set(d, 1.0f);
  const V two = hn::Set(d, 2.0f);
  const V limited = AtMost(d, kFlat, AboveMinusInfinity(d, x));
  // Without the checks of ExpOf: the argument is small, and whoever multiplies by x keeps NaN.
  const V e = hn::Exp(d, limited);
  const auto is_line = hn::Gt(x, hn::Set(d, threshold));
  const V n = hn::IfThenElse(is_line, hn::MulSub(e, e, one), hn::Mul(e, hn::Add(e, two)));
  const V inverse = hn::Div(one, hn::Add(n, two));
  // 1 - tanh^2 = 4 (n + 1) / (n + 2)^2
  const V square = hn::Mul(hn::Mul(hn::Set(d, 4.0f), inverse), hn::Mul(hn::Add(n, one), inverse));
  const V bend = hn::IfThenElse(is_line, one, hn::Div(e, hn::Add(one, e)));
  return {hn::Mul(n, inverse), hn::Mul(square, bend), limited};
}

template <typename T>
struct MishCurve {
  MishCurve(T x, T threshold) {
    constexpr T kFlat = std::is_same_v<T, float> ? 20 : 40;
    limited = x > kFlat ? kFlat : AboveMinusInfinity(x);
    const T e = std::exp(limited);
    const bool is_line = x > threshold;
    const T n = is_line ? e * e - T{1} : e * (e + T{2});
    tanh = n / (n + T{2});
    slope = T{4} * (n + T{1}) / ((n + T{2}) * (n + T{2})) * (is_line ? T{1} : e / (T{1} + e));
  }
  T tanh;
  T slope;
  T limited;
};

struct Mish {
  explicit Mish(const OpContext& context) : threshold(context.Attr<float>("threshold")) {}

  template <class D, class V>
  V operator()(D d, V x) const {
    return hn::Mul(AboveMinusInfinity(d, x), Curve(d, x, threshold).tanh);
  }
  template <typename T>
  T operator()(T x) const {
    return AboveMinusInfinity(x) * MishCurve<T>(x, static_cast<T>(threshold)).tanh;
  }

  float threshold;
};

struct MishGrad {
  explicit MishGrad(const OpContext& context) : threshold(context.Attr<float>("threshold")) {}

  template <class D, class V>
  V operator()(D d, V x, V dout) const {
    const auto curve = Curve(d, x, threshold);
    return hn::Mul(dout, hn::MulAdd(curve.limited, curve.slope, curve.tanh));
  }
  template <typename T>
  T operator()(T x, T dout) const {
    const MishCurve<T> curve(x, static_cast<T>(threshold));
    return dout * (curve.tanh + curve.limited * curve.slope);
  }

  float threshold;
};

UnaryFloatLoops MishLoops(const OpContext& context) { return UnaryLoops<Mish, MishGrad>(context); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(MishLoops);

void RegisterMish(OpRegistry& registry) {
  RegisterUnary<HWY_NAMESPACE::Mish, HWY_NAMESPACE::MishGrad>(
      registry,
      {.type = "mish",
       .doc = "Out = X * tanh(log(1 + exp(X))), X * tanh(X) above the threshold.",
       .grad_doc = "X@GRAD = Out@GRAD times the derivative of X * tanh(log(1 + exp(X))).",
       .grad_reads = "X",
       .zero_preserving = true,
       .grad_zero_preserving = true,
       .attrs = {{.name = "threshold",
                  .type = AttrType::kFloat,
                  .default_value = 20.0f,
                  .doc = "Above it, log(1 + exp(X)) is replaced by X."}}},
      [](const OpContext& context) { return HWY_DYNAMIC_DISPATCH(MishLoops)(context); });
}

}  // namespace skiff
#endif  // HWY_ONCE
