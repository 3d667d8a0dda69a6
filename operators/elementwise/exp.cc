// exp: Out = e^X. Source: Fluid's exp.
//
// X@GRAD = Out@GRAD * Out.
#include <cmath>

#include "operators/elementwise/unary_shared.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/exp.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/simd_loops-inl.h"

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

void ExpLoop(const float* x, float* out, int64_t count) { UnaryLoop(Exp(), x, out, count); }

void ExpGradLoop(const float* out, const float* dout, float* dx, int64_t count) {
  BinaryLoop(ExpGrad(), out, 1, dout, 1, dx, count);
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(ExpLoop);
HWY_EXPORT(ExpGradLoop);

void RegisterExp(OpRegistry& registry) {
  RegisterUnary<HWY_NAMESPACE::Exp, HWY_NAMESPACE::ExpGrad>(
      registry,
      {.type = "exp",
       .doc = "Out = e^X.",
       .grad_doc = "X@GRAD = Out@GRAD * Out.",
       .grad_reads = "Out",
       .zero_preserving = false,
       .grad_zero_preserving = true},
      [](const float* x, float* out, int64_t count) {
        HWY_DYNAMIC_DISPATCH(ExpLoop)(x, out, count);
      },
      [](const float* out, const float* dout, float* dx, int64_t count) {
        HWY_DYNAMIC_DISPATCH(ExpGradLoop)(out, dout, dx, count);
      });
}

}  // namespace skiff
#endif  // HWY_ONCE
