// sqrt: Out = √X. Source: Fluid's sqrt.
//
// X@GRAD = Out@GRAD / (2 Out).
#include <cmath>

#include "operators/elementwise/kernels/unary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/sqrt.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

struct Sqrt {
  template <class D, class V>
  V operator()(D, V x) const {
    return hn::Sqrt(x);
  }
  template <typename T>
  T operator()(T x) const {
    return std::sqrt(x);
  }
};

struct SqrtGrad {
  template <class D, class V>
  V operator()(D d, V out, V dout) const {
    return hn::Div(hn::Mul(hn::Set(d, 0.5f), dout), out);
  }
  template <typename T>
  T operator()(T out, T dout) const {
    return T{0.5} * dout / out;
  }
};

UnaryFloatLoops SqrtLoops(const OpContext& context) { return UnaryLoops<Sqrt, SqrtGrad>(context); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(SqrtLoops);

void RegisterSqrt(OpRegistry& registry) {
  RegisterUnary<HWY_NAMESPACE::Sqrt, HWY_NAMESPACE::SqrtGrad>(
      registry,
      {.type = "sqrt",
       .doc = "Out = the square root of X.",
       .grad_doc = "X@GRAD = Out@GRAD / (2 * Out).",
       .grad_reads = "Out",
       .zero_preserving = true,
       .grad_zero_preserving = false},
      [](const OpContext& context) { return HWY_DYNAMIC_DISPATCH(SqrtLoops)(context); });
}

}  // namespace skiff
#endif  // HWY_ONCE
