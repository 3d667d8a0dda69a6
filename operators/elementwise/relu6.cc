// relu6: Out = min(max(X, 0), 6); NaN stays NaN. Source: Fluid's relu6, after Krizhevsky:
// Convolutional Deep Belief Networks on CIFAR-10 (2010).
//
// X@GRAD = Out@GRAD where 0 < Out < 6, else 0.
#include "operators/elementwise/kernels/unary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/relu6.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

struct Relu6 {
  template <class D, class V>
  V operator()(D d, V x) const {
    const V six = hn::Set(d, 6.0f);
    const V above = hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);
    return hn::IfThenElse(hn::Gt(above, six), six, above);
  }
  template <typename T>
  T operator()(T x) const {
    const T above = x < T{0} ? T{0} : x;
    return above > T{6} ? T{6} : above;
  }
};

struct Relu6Grad {
  template <class D, class V>
  V operator()(D d, V out, V dout) const {
    const auto inside = hn::And(hn::Gt(out, hn::Zero(d)), hn::Lt(out, hn::Set(d, 6.0f)));
    return hn::IfThenElseZero(inside, dout);
  }
  template <typename T>
  T operator()(T out, T dout) const {
    return out > T{0} && out < T{6} ? dout : T{0};
  }
};

UnaryFloatLoops Relu6Loops(const OpContext& context) {
  return UnaryLoops<Relu6, Relu6Grad>(context);
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(Relu6Loops);

void RegisterRelu6(OpRegistry& registry) {
  RegisterUnary<HWY_NAMESPACE::Relu6, HWY_NAMESPACE::Relu6Grad>(
      registry,
      {.type = "relu6",
       .doc = "Out = min(max(X, 0), 6); NaN stays NaN.",
       .grad_doc = "X@GRAD = Out@GRAD where 0 < Out < 6, else 0.",
       .grad_reads = "Out",
       .zero_preserving = true,
       .grad_zero_preserving = true},
      [](const OpContext& context) { return HWY_DYNAMIC_DISPATCH(Relu6Loops)(context); });
}

}  // namespace skiff
#endif  // HWY_ONCE
