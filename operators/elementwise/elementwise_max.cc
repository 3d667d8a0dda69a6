// elementwise_max: Out = the larger of X and Y, Y where they are equal. Source: Fluid's
// elementwise_max.
//
// X@GRAD = Out@GRAD where X > Y, Y@GRAD = Out@GRAD where X <= Y, else 0.
#include "operators/elementwise/binary_shared.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/elementwise_max.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

struct Max {
  template <class D, class V>
  V operator()(D, V x, V y) const {
    return hn::IfThenElse(hn::Gt(x, y), x, y);
  }
  template <typename T>
  T operator()(T x, T y) const {
    return x > y ? x : y;
  }
};

struct MaxXGrad {
  template <class D, class V>
  V operator()(D, V x, V y, V, V dout) const {
    return hn::IfThenElseZero(hn::Gt(x, y), dout);
  }
  template <typename T>
  T operator()(T x, T y, T, T dout) const {
    return x > y ? dout : T{0};
  }
};

struct MaxYGrad {
  template <class D, class V>
  V operator()(D, V x, V y, V, V dout) const {
    return hn::IfThenElseZero(hn::Le(x, y), dout);
  }
  template <typename T>
  T operator()(T x, T y, T, T dout) const {
    return x <= y ? dout : T{0};
  }
};

void MaxLoop(const float* x, int64_t x_step, const float* y, int64_t y_step, float* out,
             int64_t count) {
  BinaryLoop(Max(), x, x_step, y, y_step, out, count);
}

void MaxXGradLoop(const float* x, int64_t x_step, const float* y, int64_t y_step, const float* out,
                  const float* dout, float* grad, int64_t count) {
  BinaryGradLoop(MaxXGrad(), x, x_step, y, y_step, out, dout, grad, count);
}

void MaxYGradLoop(const float* x, int64_t x_step, const float* y, int64_t y_step, const float* out,
                  const float* dout, float* grad, int64_t count) {
  BinaryGradLoop(MaxYGrad(), x, x_step, y, y_step, out, dout, grad, count);
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(MaxLoop);
HWY_EXPORT(MaxXGradLoop);
HWY_EXPORT(MaxYGradLoop);

void RegisterElementwiseMax(OpRegistry& registry) {
  const BinaryFacts facts = {
      .type = "elementwise_max",
      .doc = "Out = the larger of X and Y.",
      .zero_preserving = true,
      .grad_doc = "X@GRAD = Out@GRAD where X > Y, Y@GRAD = Out@GRAD where X <= Y, else 0.",
      .no_gradient_reason = "",
      .grad_reads_x = true,
      .grad_reads_y = true,
      .grad_zero_preserving = true};
  const BinaryKernelLoop<float> forward = [](const float* x, int64_t x_step, const float* y,
                                             int64_t y_step, float* out, int64_t count) {
    HWY_DYNAMIC_DISPATCH(MaxLoop)(x, x_step, y, y_step, out, count);
  };
  const BinaryGradKernelLoop<float> x_grad = [](const float* x, int64_t x_step, const float* y,
                                                int64_t y_step, const float* out, const float* dout,
                                                float* grad, int64_t count) {
    HWY_DYNAMIC_DISPATCH(MaxXGradLoop)(x, x_step, y, y_step, out, dout, grad, count);
  };
  const BinaryGradKernelLoop<float> y_grad = [](const float* x, int64_t x_step, const float* y,
                                                int64_t y_step, const float* out, const float* dout,
                                                float* grad, int64_t count) {
    HWY_DYNAMIC_DISPATCH(MaxYGradLoop)(x, x_step, y, y_step, out, dout, grad, count);
  };
  RegisterBinary<HWY_NAMESPACE::Max, HWY_NAMESPACE::MaxXGrad, HWY_NAMESPACE::MaxYGrad, int32_t,
                 int64_t>(registry, facts,
                          {.forward = forward, .grad = {.x = x_grad, .y = y_grad}});
}

}  // namespace skiff
#endif  // HWY_ONCE
