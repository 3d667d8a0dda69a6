// relu: Out = max(X, 0), and NaN stays NaN. Source: Fluid's relu.
//
// X@GRAD = Out@GRAD where Out > 0, else 0. It reads Out, not X, so the op may run in place.
#include "operators/elementwise/kernels/unary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/relu.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

struct Relu {
  template <class D, class V>
  V operator()(D d, V x) const {
    // Not hn::Max, which on some instruction sets turns NaN into 0.
    return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);
  }
  template <typename T>
  T operator()(T x) const {
    return x < T{0} ? T{0} : x;
  }
};

struct ReluGrad {
  template <class D, class V>
  V operator()(D d, V out, V dout) const {
    return hn::IfThenElseZero(hn::Gt(out, hn::Zero(d)), dout);
  }
  template <typename T>
  T operator()(T out, T dout) const {
    return out > T{0} ? dout : T{0};
  }
};

UnaryFloatLoops ReluLoops(const OpContext& context) { return UnaryLoops<Relu, ReluGrad>(context); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(ReluLoops);

void RegisterRelu(OpRegistry& registry) {
  RegisterUnary<HWY_NAMESPACE::Relu, HWY_NAMESPACE::ReluGrad, int32_t, int64_t>(
      registry,
      {.type = "relu",
       .doc = "Out = max(X, 0); NaN stays NaN.",
       .grad_doc = "X@GRAD = Out@GRAD where Out > 0, else 0.",
       .grad_reads = "Out",
       .zero_preserving = true,
       .grad_zero_preserving = true},
      [](const OpContext& context) { return HWY_DYNAMIC_DISPATCH(ReluLoops)(context); });
}

}  // namespace skiff
#endif  // HWY_ONCE
