// elementwise_mul: Out = X * Y. Source: Fluid's elementwise_mul. Integers wrap around.
//
// X@GRAD = Out@GRAD * Y, Y@GRAD = Out@GRAD * X.
#include "operators/elementwise/binary_shared.h"
#include "operators/elementwise/integer_shared.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/elementwise_mul.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/simd_loops-inl.h"

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

void MulLoop(const float* x, int64_t x_step, const float* y, int64_t y_step, float* out,
             int64_t count) {
  BinaryLoop(Mul(), x, x_step, y, y_step, out, count);
}

void MulXGradLoop(const float* x, int64_t x_step, const float* y, int64_t y_step, const float* out,
                  const float* dout, float* grad, int64_t count) {
  BinaryGradLoop(MulXGrad(), x, x_step, y, y_step, out, dout, grad, count);
}

void MulYGradLoop(const float* x, int64_t x_step, const float* y, int64_t y_step, const float* out,
                  const float* dout, float* grad, int64_t count) {
  BinaryGradLoop(MulYGrad(), x, x_step, y, y_step, out, dout, grad, count);
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(MulLoop);
HWY_EXPORT(MulXGradLoop);
HWY_EXPORT(MulYGradLoop);

void RegisterElementwiseMul(OpRegistry& registry) {
  const BinaryFacts facts = {.type = "elementwise_mul",
                             .doc = "Out = X * Y.",
                             .zero_preserving = true,
                             .grad_doc = "X@GRAD = Out@GRAD * Y, Y@GRAD = Out@GRAD * X.",
                             .no_gradient_reason = "",
                             .grad_reads_x = true,
                             .grad_reads_y = true,
                             .grad_zero_preserving = true};
  const BinaryKernelLoop<float> forward = [](const float* x, int64_t x_step, const float* y,
                                             int64_t y_step, float* out, int64_t count) {
    HWY_DYNAMIC_DISPATCH(MulLoop)(x, x_step, y, y_step, out, count);
  };
  const BinaryGradKernelLoop<float> x_grad = [](const float* x, int64_t x_step, const float* y,
                                                int64_t y_step, const float* out, const float* dout,
                                                float* grad, int64_t count) {
    HWY_DYNAMIC_DISPATCH(MulXGradLoop)(x, x_step, y, y_step, out, dout, grad, count);
  };
  const BinaryGradKernelLoop<float> y_grad = [](const float* x, int64_t x_step, const float* y,
                                                int64_t y_step, const float* out, const float* dout,
                                                float* grad, int64_t count) {
    HWY_DYNAMIC_DISPATCH(MulYGradLoop)(x, x_step, y, y_step, out, dout, grad, count);
  };
  RegisterBinary<HWY_NAMESPACE::Mul, HWY_NAMESPACE::MulXGrad, HWY_NAMESPACE::MulYGrad, int32_t,
                 int64_t>(registry, facts,
                          {.forward = forward, .grad = {.x = x_grad, .y = y_grad}});
}

}  // namespace skiff
#endif  // HWY_ONCE
