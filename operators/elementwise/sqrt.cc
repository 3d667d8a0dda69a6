// sqrt: Out = √X. Source: Fluid's sqrt.
//
// X@GRAD = Out@GRAD / (2 Out).
#include <cmath>

#include "operators/elementwise/unary_shared.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/sqrt.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/simd_loops-inl.h"

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

void SqrtLoop(const float* x, float* out, int64_t count) { UnaryLoop(Sqrt(), x, out, count); }

void SqrtGradLoop(const float* out, const float* dout, float* dx, int64_t count) {
  BinaryLoop(SqrtGrad(), out, 1, dout, 1, dx, count);
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(SqrtLoop);
HWY_EXPORT(SqrtGradLoop);

void RegisterSqrt(OpRegistry& registry) {
  RegisterUnary<HWY_NAMESPACE::Sqrt, HWY_NAMESPACE::SqrtGrad>(
      registry,
      {.type = "sqrt",
       .doc = "Out = the square root of X.",
       .grad_doc = "X@GRAD = Out@GRAD / (2 * Out).",
       .grad_reads = "Out",
       .zero_preserving = true,
       .grad_zero_preserving = false},
      [](const float* x, float* out, int64_t count) {
        HWY_DYNAMIC_DISPATCH(SqrtLoop)(x, out, count);
      },
      [](const float* out, const float* dout, float* dx, int64_t count) {
        HWY_DYNAMIC_DISPATCH(SqrtGradLoop)(out, dout, dx, count);
      });
}

}  // namespace skiff
#endif  // HWY_ONCE
