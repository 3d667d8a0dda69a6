// elementwise_div: Out = X / Y. Source: Fluid's elementwise_div. Integer quotients are truncated
// towards zero, and an integer division by zero is an Error.
//
// X@GRAD = Out@GRAD / Y, Y@GRAD = -Out@GRAD * Out / Y.
#include "operators/elementwise/kernels/binary.h"
#include "operators/elementwise/kernels/integer_division.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/elementwise_div.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

struct Div {
  template <class D, class V>
  V operator()(D, V x, V y) const {
    return hn::Div(x, y);
  }
  template <typename T>
  T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      return WrappingDivide(x, y);
    } else {
      return x / y;
    }
  }
};

struct DivXGrad {
  template <class D, class V>
  V operator()(D, V, V y, V, V dout) const {
    return hn::Div(dout, y);
  }
  template <typename T>
  T operator()(T, T y, T, T dout) const {
    return dout / y;
  }
};

struct DivYGrad {
  template <class D, class V>
  V operator()(D, V, V y, V out, V dout) const {
    return hn::Neg(hn::Div(hn::Mul(dout, out), y));
  }
  template <typename T>
  T operator()(T, T y, T out, T dout) const {
    return -(dout * out / y);
  }
};

BinaryFloatLoops DivLoops() { return BinaryLoops<Div, DivXGrad, DivYGrad>(); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(DivLoops);

namespace {

template <typename T>
void AddIntegerKernel(OpRegistry& registry) {
  AddBinaryKernel<T>(registry, "elementwise_div", ScalarBinaryLoop<HWY_NAMESPACE::Div, T>,
                     kScalarGrain,
                     [](const T* y, int64_t count) { CheckDivisors("elementwise_div", y, count); });
}

}  // namespace

void RegisterElementwiseDiv(OpRegistry& registry) {
  const BinaryFacts facts = {.type = "elementwise_div",
                             .doc = "Out = X / Y; integers are truncated towards zero.",
                             .zero_preserving = false,
                             .grad_doc = "X@GRAD = Out@GRAD / Y, Y@GRAD = -Out@GRAD * Out / Y.",
                             .no_gradient_reason = "",
                             .grad_reads_y = true,
                             .grad_reads_out = true,
                             .grad_zero_preserving = false,
                             .checks_y = true};
  RegisterBinary<HWY_NAMESPACE::Div, HWY_NAMESPACE::DivXGrad, HWY_NAMESPACE::DivYGrad>(
      registry, facts, [] { return HWY_DYNAMIC_DISPATCH(DivLoops)(); });
  AddIntegerKernel<int32_t>(registry);
  AddIntegerKernel<int64_t>(registry);
}

}  // namespace skiff
#endif  // HWY_ONCE
