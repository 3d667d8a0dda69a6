// exp: Out = e^X. Source: Fluid's exp.
//
// X@GRAD = Out@GRAD * Out.
#include <cmath>

#include "operators/elementwise/kernels/unary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/exp.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

struct Exp {
  template <class D, class V>
  V operator()(D d, V x) const {
    return ExpOf(d, x);
  }
  template <typename T>
  T operator()(T x) const {
    return std::exp(x);
  }
};

struct ExpGrad {
  template <class D, class V>
  V operator()(D, V out, V dout) const {
    return hn::Mul(dout, out);
  }
  template <typename T>
  T operator()(T out, T dout) const {
    return dout * out;
  }
};

UnaryFloatLoops ExpLoops(const OpContext& context) { return UnaryLoops<Exp, ExpGrad>(context); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(ExpLoops);

void RegisterExp(OpRegistry& registry) {
  RegisterUnary<HWY_NAMESPACE::Exp, HWY_NAMESPACE::ExpGrad>(
      registry,
      {.type = "exp",
       .doc = "Out = e^X.",
       .grad_doc = "X@GRAD = Out@GRAD * Out.",
       .grad_reads = "Out",
       .zero_preserving = false,
       .grad_zero_preserving = true},
      [](const OpContext& context) { return HWY_DYNAMIC_DISPATCH(ExpLoops)(context); });
}

}  // namespace skiff
#endif  // HWY_ONCE
