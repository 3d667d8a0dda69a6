// hard_sigmoid: Out = min(max(slope * X + offset, 0), 1); NaN stays NaN. Source: Fluid's
// hard_sigmoid, after Courbariaux, Bengio, David: BinaryConnect (2015).
//
// X@GRAD = slope * Out@GRAD where 0 < Out < 1, else 0.
#include "operators/elementwise/kernels/unary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/hard_sigmoid.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

struct HardSigmoid {
  explicit HardSigmoid(const OpContext& context)
      : slope(context.Attr<float>("slope")), offset(context.Attr<float>("offset")) {}

  template <class D, class V>
  V operator()(D d, V x) const {
    const V one = hn::Set(d, 1.0f);
    const V line = hn::Add(hn::Mul(x, hn::Set(d, slope)), hn::Set(d, offset));
    // Comparisons, since hn::Min and hn::Max may turn NaN into a bound.
    const V above = hn::IfThenZeroElse(hn::Lt(line, hn::Zero(d)), line);
    return hn::IfThenElse(hn::Gt(above, one), one, above);
  }
  template <typename T>
  T operator()(T x) const {
    const T line = x * static_cast<T>(slope) + static_cast<T>(offset);
    const T above = line < T{0} ? T{0} : line;
    return above > T{1} ? T{1} : above;
  }

  float slope;
  float offset;
};

struct HardSigmoidGrad {
  explicit HardSigmoidGrad(const OpContext& context) : slope(context.Attr<float>("slope")) {}

  template <class D, class V>
  V operator()(D d, V out, V dout) const {
    const auto inside = hn::And(hn::Gt(out, hn::Zero(d)), hn::Lt(out, hn::Set(d, 1.0f)));
    return hn::IfThenElseZero(inside, hn::Mul(dout, hn::Set(d, slope)));
  }
  template <typename T>
  T operator()(T out, T dout) const {
    return out > T{0} && out < T{1} ? dout * static_cast<T>(slope) : T{0};
  }

  float slope;
};

UnaryFloatLoops HardSigmoidLoops(const OpContext& context) {
  return UnaryLoops<HardSigmoid, HardSigmoidGrad>(context);
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(HardSigmoidLoops);

void RegisterHardSigmoid(OpRegistry& registry) {
  RegisterUnary<HWY_NAMESPACE::HardSigmoid, HWY_NAMESPACE::HardSigmoidGrad>(
      registry,
      {.type = "hard_sigmoid",
       .doc = "Out = min(max(slope * X + offset, 0), 1); NaN stays NaN.",
       .grad_doc = "X@GRAD = slope * Out@GRAD where 0 < Out < 1, else 0.",
       .grad_reads = "Out",
       .zero_preserving = false,  // offset
       .grad_zero_preserving = true,
       .attrs = {{.name = "slope",
                  .type = AttrType::kFloat,
                  .default_value = 0.2f,
                  .doc = "The slope between 0 and 1."},
                 {.name = "offset",
                  .type = AttrType::kFloat,
                  .default_value = 0.5f,
                  .doc = "Out where X is 0."}}},
      [](const OpContext& context) { return HWY_DYNAMIC_DISPATCH(HardSigmoidLoops)(context); });
}

}  // namespace skiff
#endif  // HWY_ONCE
