// tanh: Out = (exp(X) - exp(-X)) / (exp(X) + exp(-X)). Source: Fluid's tanh.
//
// X@GRAD = Out@GRAD * (1 - Out²).
#include <cmath>

#include "operators/elementwise/kernels/unary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/tanh.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

struct Tanh {
  template <class D, class V>
  V operator()(D d, V x) const {
    return hn::Tanh(d, x);
  }
  template <typename T>
  T operator()(T x) const {
    return std::tanh(x);
  }
};

struct TanhGrad {
  template <class D, class V>
  V operator()(D d, V out, V dout) const {
    return hn::Mul(dout, hn::NegMulAdd(out, out, hn::Set(d, 1.0f)));
  }
  template <typename T>
  T operator()(T out, T dout) const {
    return dout * (T{1} - out * out);
  }
};

UnaryFloatLoops TanhLoops(const OpContext& context) { return UnaryLoops<Tanh, TanhGrad>(context); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(TanhLoops);

void RegisterTanh(OpRegistry& registry) {
  RegisterUnary<HWY_NAMESPACE::Tanh, HWY_NAMESPACE::TanhGrad>(
      registry,
      {.type = "tanh",
       .doc = "Out = tanh(X).",
       .grad_doc = "X@GRAD = Out@GRAD * (1 - Out^2).",
       .grad_reads = "Out",
       .zero_preserving = true,
       .grad_zero_preserving = true},
      [](const OpContext& context) { return HWY_DYNAMIC_DISPATCH(TanhLoops)(context); });
}

}  // namespace skiff
#endif  // HWY_ONCE
