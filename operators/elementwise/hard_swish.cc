// hard_swish: Out = X * min(max(X + offset, 0), threshold) / scale. Source: Fluid's hard_swish,
// after Howard et al.: Searching for MobileNetV3 (2019).
//
// X@GRAD = Out@GRAD * (2 X + offset) / scale where 0 < X + offset < threshold, 0 below, and
// Out@GRAD * threshold / scale above (Fluid assumes that this slope is 1, as it is by default).
#include "operators/elementwise/kernels/unary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/hard_swish.cc"
#include "hwy/foreach_target.h"
#include "operators/common/finite-inl.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

struct HardSwish {
  explicit HardSwish(const OpContext& context)
      : threshold(context.Attr<float>("threshold")),
        scale(context.Attr<float>("scale")),
        offset(context.Attr<float>("offset")) {}

  template <class D, class V>
  V operator()(D d, V x) const {
    const V shifted = hn::Add(x, hn::Set(d, offset));
    const V above = hn::IfThenZeroElse(hn::Lt(shifted, hn::Zero(d)), shifted);
    const V top = hn::Set(d, threshold);
    const V gate = hn::IfThenElse(hn::Gt(above, top), top, above);
    // In this order: X * threshold might overflow.
    return hn::Mul(AboveMinusInfinity(d, x), hn::Div(gate, hn::Set(d, scale)));
  }
  template <typename T>
  T operator()(T x) const {
    const T shifted = x + static_cast<T>(offset);
    const T above = shifted < T{0} ? T{0} : shifted;
    const T top = static_cast<T>(threshold);
    return AboveMinusInfinity(x) * ((above > top ? top : above) / static_cast<T>(scale));
  }

  float threshold;
  float scale;
  float offset;
};

struct HardSwishGrad {
  explicit HardSwishGrad(const OpContext& context)
      : threshold(context.Attr<float>("threshold")),
        scale(context.Attr<float>("scale")),
        offset(context.Attr<float>("offset")) {}

  template <class D, class V>
  V operator()(D d, V x, V dout) const {
    const V shifted = hn::Add(x, hn::Set(d, offset));
    const V top = hn::Set(d, threshold);
    const V inside = hn::Mul(dout, hn::Add(x, shifted));
    const V rising = hn::IfThenElse(hn::Ge(shifted, top), hn::Mul(dout, top), inside);
    return hn::IfThenZeroElse(hn::Le(shifted, hn::Zero(d)), hn::Div(rising, hn::Set(d, scale)));
  }
  template <typename T>
  T operator()(T x, T dout) const {
    const T shifted = x + static_cast<T>(offset);
    const T top = static_cast<T>(threshold);
    if (shifted <= T{0}) return T{0};
    return dout * (shifted >= top ? top : x + shifted) / static_cast<T>(scale);
  }

  float threshold;
  float scale;
  float offset;
};

UnaryFloatLoops HardSwishLoops(const OpContext& context) {
  return UnaryLoops<HardSwish, HardSwishGrad>(context);
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(HardSwishLoops);

void RegisterHardSwish(OpRegistry& registry) {
  RegisterUnary<HWY_NAMESPACE::HardSwish, HWY_NAMESPACE::HardSwishGrad>(
      registry,
      {.type = "hard_swish",
       .doc = "Out = X * min(max(X + offset, 0), threshold) / scale.",
       .grad_doc = "X@GRAD = Out@GRAD * (2 * X + offset) / scale where 0 < X + offset < threshold, "
                   "0 below, Out@GRAD * threshold / scale above.",
       .grad_reads = "X",
       .zero_preserving = true,
       .grad_zero_preserving = true,
       .attrs = {{.name = "threshold",
                  .type = AttrType::kFloat,
                  .default_value = 6.0f,
                  .doc = "The largest value of the factor before scaling.",
                  .accepts = [](const Attribute& value) { return std::get<float>(value) > 0; },
                  .expected = "more than 0"},
                 {.name = "scale",
                  .type = AttrType::kFloat,
                  .default_value = 6.0f,
                  .doc = "The divisor of the product.",
                  .accepts = [](const Attribute& value) { return std::get<float>(value) > 0; },
                  .expected = "more than 0"},
                 {.name = "offset",
                  .type = AttrType::kFloat,
                  .default_value = 3.0f,
                  .doc = "The number added to X."}}},
      [](const OpContext& context) { return HWY_DYNAMIC_DISPATCH(HardSwishLoops)(context); });
}

}  // namespace skiff
#endif  // HWY_ONCE
