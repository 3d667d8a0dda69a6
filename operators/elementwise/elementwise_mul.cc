// elementwise_mul: Out = X * Y. Source: Fluid's elementwise_mul. Integers wrap around.
//
// X@GRAD = Out@GRAD * Y, Y@GRAD = Out@GRAD * X. X may be selected rows if Y is one number.
#include "operators/common/integer.h"
#include "operators/common/selected_rows.h"
#include "operators/elementwise/kernels/binary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/elementwise_mul.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/kernels/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

struct Mul {
  template <class D, class V>
  V operator()(D, V x, V y) const {
    return hn::Mul(x, y);
  }
  template <typename T>
  T operator()(T x, T y) const {
    return WrappingMul(x, y);
  }
};

struct MulXGrad {
  template <class D, class V>
  V operator()(D, V, V y, V, V dout) const {
    return hn::Mul(dout, y);
  }
  template <typename T>
  T operator()(T, T y, T, T dout) const {
    return dout * y;
  }
};

struct MulYGrad {
  template <class D, class V>
  V operator()(D, V x, V, V, V dout) const {
    return hn::Mul(dout, x);
  }
  template <typename T>
  T operator()(T x, T, T, T dout) const {
    return dout * x;
  }
};

BinaryFloatLoops MulLoops() { return BinaryLoops<Mul, MulXGrad, MulYGrad>(); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(MulLoops);

void RegisterElementwiseMul(OpRegistry& registry) {
  const BinaryFacts facts = {.type = "elementwise_mul",
                             .doc = "Out = X * Y. X may be selected rows if Y is one number.",
                             .zero_preserving = true,
                             .grad_doc = "X@GRAD = Out@GRAD * Y, Y@GRAD = Out@GRAD * X.",
                             .no_gradient_reason = "",
                             .grad_reads_x = true,
                             .grad_reads_y = true,
                             .grad_zero_preserving = true,
                             .takes_selected_rows = true};
  RegisterBinary<HWY_NAMESPACE::Mul, HWY_NAMESPACE::MulXGrad, HWY_NAMESPACE::MulYGrad, int32_t,
                 int64_t>(registry, facts, [] { return HWY_DYNAMIC_DISPATCH(MulLoops)(); });
  // For selected rows: only their values are multiplied. Zeros stay zeros, so the other rows may be
  // missing.
  AddValuesKernel<float>(registry, facts.type, [](PrepareContext& context) {
    return PrepareBinary<float, float>(context, HWY_DYNAMIC_DISPATCH(MulLoops)().forward,
                                       kVectorGrain, nullptr);
  });
  AddValuesKernel<double>(registry, facts.type, [](PrepareContext& context) {
    return PrepareBinary<double, double>(context, ScalarBinaryLoop<HWY_NAMESPACE::Mul, double>,
                                         kScalarGrain, nullptr);
  });
}

}  // namespace skiff
#endif  // HWY_ONCE
