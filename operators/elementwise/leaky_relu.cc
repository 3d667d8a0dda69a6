// leaky_relu: Out = alpha * X where X < 0, else X; NaN stays NaN. Source: Fluid's leaky_relu,
// after Maas, Hannun, Ng: Rectifier Nonlinearities Improve Neural Network Acoustic Models (2013).
//
// X@GRAD = alpha * Out@GRAD where X < 0, else Out@GRAD.
#include "operators/elementwise/kernels/unary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/leaky_relu.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

struct LeakyRelu {
  explicit LeakyRelu(const OpContext& context) : alpha(context.Attr<float>("alpha")) {}

  template <class D, class V>
  V operator()(D d, V x) const {
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, hn::Set(d, alpha)), x);
  }
  template <typename T>
  T operator()(T x) const {
    return x < T{0} ? x * static_cast<T>(alpha) : x;
  }

  float alpha;
};

struct LeakyReluGrad {
  explicit LeakyReluGrad(const OpContext& context) : alpha(context.Attr<float>("alpha")) {}

  template <class D, class V>
  V operator()(D d, V x, V dout) const {
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(dout, hn::Set(d, alpha)), dout);
  }
  template <typename T>
  T operator()(T x, T dout) const {
    return x < T{0} ? dout * static_cast<T>(alpha) : dout;
  }

  float alpha;
};

UnaryFloatLoops LeakyReluLoops(const OpContext& context) {
  return UnaryLoops<LeakyRelu, LeakyReluGrad>(context);
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(LeakyReluLoops);

void RegisterLeakyRelu(OpRegistry& registry) {
  RegisterUnary<HWY_NAMESPACE::LeakyRelu, HWY_NAMESPACE::LeakyReluGrad>(
      registry,
      {.type = "leaky_relu",
       .doc = "Out = alpha * X where X < 0, else X; NaN stays NaN.",
       .grad_doc = "X@GRAD = alpha * Out@GRAD where X < 0, else Out@GRAD.",
       .grad_reads = "X",
       .zero_preserving = true,
       .grad_zero_preserving = true,
       .attrs = {{.name = "alpha",
                  .type = AttrType::kFloat,
                  .default_value = 0.02f,
                  .doc = "The slope where X is negative."}}},
      [](const OpContext& context) { return HWY_DYNAMIC_DISPATCH(LeakyReluLoops)(context); });
}

}  // namespace skiff
#endif  // HWY_ONCE
