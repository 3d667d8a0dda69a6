// elementwise_min: Out = the smaller of X and Y, Y where they are equal. Source: Fluid's
// elementwise_min.
//
// X@GRAD = Out@GRAD where X < Y, Y@GRAD = Out@GRAD where X >= Y, else 0.
#include "operators/elementwise/kernels/binary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/elementwise_min.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

struct Min {
  template <class D, class V>
  V operator()(D, V x, V y) const {
    // Not hn::Min: where x equals y or one of them is NaN, the result must be y on every
    // instruction set.
    return hn::IfThenElse(hn::Lt(x, y), x, y);
  }
  template <typename T>
  T operator()(T x, T y) const {
    return x < y ? x : y;
  }
};

struct MinXGrad {
  template <class D, class V>
  V operator()(D, V x, V y, V, V dout) const {
    return hn::IfThenElseZero(hn::Lt(x, y), dout);
  }
  template <typename T>
  T operator()(T x, T y, T, T dout) const {
    return x < y ? dout : T{0};
  }
};

struct MinYGrad {
  template <class D, class V>
  V operator()(D, V x, V y, V, V dout) const {
    return hn::IfThenElseZero(hn::Ge(x, y), dout);
  }
  template <typename T>
  T operator()(T x, T y, T, T dout) const {
    return x >= y ? dout : T{0};
  }
};

BinaryFloatLoops MinLoops() { return BinaryLoops<Min, MinXGrad, MinYGrad>(); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(MinLoops);

void RegisterElementwiseMin(OpRegistry& registry) {
  const BinaryFacts facts = {
      .type = "elementwise_min",
      .doc = "Out = the smaller of X and Y.",
      .zero_preserving = true,
      .grad_doc = "X@GRAD = Out@GRAD where X < Y, Y@GRAD = Out@GRAD where X >= Y, else 0.",
      .no_gradient_reason = "",
      .grad_reads_x = true,
      .grad_reads_y = true,
      .grad_zero_preserving = true};
  RegisterBinary<HWY_NAMESPACE::Min, HWY_NAMESPACE::MinXGrad, HWY_NAMESPACE::MinYGrad, int32_t,
                 int64_t>(registry, facts, [] { return HWY_DYNAMIC_DISPATCH(MinLoops)(); });
}

}  // namespace skiff
#endif  // HWY_ONCE
