// square: Out = X². Source: Fluid's square. Integers wrap around.
//
// X@GRAD = 2 Out@GRAD * X.
#include "operators/common/integer.h"
#include "operators/elementwise/kernels/unary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/square.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

struct Square {
  template <class D, class V>
  V operator()(D, V x) const {
    return hn::Mul(x, x);
  }
  template <typename T>
  T operator()(T x) const {
    return WrappingMul(x, x);
  }
};

struct SquareGrad {
  template <class D, class V>
  V operator()(D, V x, V dout) const {
    return hn::Mul(hn::Add(dout, dout), x);
  }
  template <typename T>
  T operator()(T x, T dout) const {
    return T{2} * dout * x;
  }
};

UnaryFloatLoops SquareLoops(const OpContext& context) {
  return UnaryLoops<Square, SquareGrad>(context);
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(SquareLoops);

void RegisterSquare(OpRegistry& registry) {
  RegisterUnary<HWY_NAMESPACE::Square, HWY_NAMESPACE::SquareGrad, int32_t, int64_t>(
      registry,
      {.type = "square",
       .doc = "Out = X^2.",
       .grad_doc = "X@GRAD = 2 * Out@GRAD * X.",
       .grad_reads = "X",
       .zero_preserving = true,
       .grad_zero_preserving = true},
      [](const OpContext& context) { return HWY_DYNAMIC_DISPATCH(SquareLoops)(context); });
}

}  // namespace skiff
#endif  // HWY_ONCE
