// elementwise_min: Out = the smaller of X and Y, Y where they are equal. Source: Fluid's
// elementwise_min.
//
// X@GRAD = Out@GRAD where X < Y, Y@GRAD = Out@GRAD where X >= Y, else 0.
#include "operators/elementwise/binary_shared.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/elementwise_min.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

struct Min {
  template <class D, class V>
  V operator()(D, V x, V y) const {
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

void MinLoop(const float* x, int64_t x_step, const float* y, int64_t y_step, float* out,
             int64_t count) {
  BinaryLoop(Min(), x, x_step, y, y_step, out, count);
}

void MinXGradLoop(const float* x, int64_t x_step, const float* y, int64_t y_step, const float* out,
                  const float* dout, float* grad, int64_t count) {
  BinaryGradLoop(MinXGrad(), x, x_step, y, y_step, out, dout, grad, count);
}

void MinYGradLoop(const float* x, int64_t x_step, const float* y, int64_t y_step, const float* out,
                  const float* dout, float* grad, int64_t count) {
  BinaryGradLoop(MinYGrad(), x, x_step, y, y_step, out, dout, grad, count);
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(MinLoop);
HWY_EXPORT(MinXGradLoop);
HWY_EXPORT(MinYGradLoop);

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
  const BinaryKernelLoop<float> forward = [](const float* x, int64_t x_step, const float* y,
                                             int64_t y_step, float* out, int64_t count) {
    HWY_DYNAMIC_DISPATCH(MinLoop)(x, x_step, y, y_step, out, count);
  };
  const BinaryGradKernelLoop<float> x_grad = [](const float* x, int64_t x_step, const float* y,
                                                int64_t y_step, const float* out, const float* dout,
                                                float* grad, int64_t count) {
    HWY_DYNAMIC_DISPATCH(MinXGradLoop)(x, x_step, y, y_step, out, dout, grad, count);
  };
  const BinaryGradKernelLoop<float> y_grad = [](const float* x, int64_t x_step, const float* y,
                                                int64_t y_step, const float* out, const float* dout,
                                                float* grad, int64_t count) {
    HWY_DYNAMIC_DISPATCH(MinYGradLoop)(x, x_step, y, y_step, out, dout, grad, count);
  };
  RegisterBinary<HWY_NAMESPACE::Min, HWY_NAMESPACE::MinXGrad, HWY_NAMESPACE::MinYGrad, int32_t,
                 int64_t>(registry, facts,
                          {.forward = forward, .grad = {.x = x_grad, .y = y_grad}});
}

}  // namespace skiff
#endif  // HWY_ONCE
