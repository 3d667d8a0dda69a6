// abs: Out = |X|. Source: Fluid's abs. The lowest integer, which has no opposite, wraps around to
// itself.
//
// X@GRAD = Out@GRAD where X > 0, -Out@GRAD where X < 0, 0 where X is 0; NaN stays NaN.
#include <cmath>
#include <type_traits>

#include "operators/common/integer.h"
#include "operators/elementwise/kernels/unary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/abs.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

struct Abs {
  template <class D, class V>
  V operator()(D, V x) const {
    return hn::Abs(x);
  }
  template <typename T>
  T operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return x < T{0} ? WrappingSub(T{0}, x) : x;
    } else {
      return std::abs(x);
    }
  }
};

struct AbsGrad {
  template <class D, class V>
  V operator()(D d, V x, V dout) const {
    const V zero = hn::Zero(d);
    // An element that is neither above nor below 0 is 0 or NaN, and its gradient is the same.
    const V rising = hn::IfThenElse(hn::Gt(x, zero), dout, x);
    return hn::IfThenElse(hn::Lt(x, zero), hn::Sub(zero, dout), rising);
  }
  template <typename T>
  T operator()(T x, T dout) const {
    if (x > T{0}) return dout;
    return x < T{0} ? T{0} - dout : x;
  }
};

UnaryFloatLoops AbsLoops(const OpContext& context) { return UnaryLoops<Abs, AbsGrad>(context); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(AbsLoops);

void RegisterAbs(OpRegistry& registry) {
  RegisterUnary<HWY_NAMESPACE::Abs, HWY_NAMESPACE::AbsGrad, int32_t, int64_t>(
      registry,
      {.type = "abs",
       .doc = "Out = |X|.",
       .grad_doc = "X@GRAD = Out@GRAD * sign(X).",
       .grad_reads = "X",
       .zero_preserving = true,
       .grad_zero_preserving = true},
      [](const OpContext& context) { return HWY_DYNAMIC_DISPATCH(AbsLoops)(context); });
}

}  // namespace skiff
#endif  // HWY_ONCE
