// elementwise_add: Out = X + Y. Source: Fluid's elementwise_add. Integers wrap around.
//
// X@GRAD = Y@GRAD = Out@GRAD.
#include "operators/elementwise/binary_shared.h"
#include "operators/elementwise/integer_shared.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/elementwise/elementwise_add.cc"
#include "hwy/foreach_target.h"
#include "operators/elementwise/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

struct Add {
  template <class D, class V>
  V operator()(D, V x, V y) const {
    return hn::Add(x, y);
  }
  template <typename T>
  T operator()(T x, T y) const {
    return WrappingAdd(x, y);
  }
};

void AddLoop(const float* x, int64_t x_step, const float* y, int64_t y_step, float* out,
             int64_t count) {
  BinaryLoop(Add(), x, x_step, y, y_step, out, count);
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(AddLoop);

void RegisterElementwiseAdd(OpRegistry& registry) {
  const BinaryFacts facts = {.type = "elementwise_add",
                             .doc = "Out = X + Y.",
                             .zero_preserving = true,
                             .grad_doc = "X@GRAD = Y@GRAD = Out@GRAD.",
                             .no_gradient_reason = "",
                             .grad_zero_preserving = true};
  const BinaryKernelLoop<float> forward = [](const float* x, int64_t x_step, const float* y,
                                             int64_t y_step, float* out, int64_t count) {
    HWY_DYNAMIC_DISPATCH(AddLoop)(x, x_step, y, y_step, out, count);
  };
  RegisterBinary<HWY_NAMESPACE::Add, PassGradient, PassGradient, int32_t, int64_t>(
      registry, facts, {.forward = forward, .grad = {.x = nullptr, .y = nullptr}});
}

}  // namespace skiff
#endif  // HWY_ONCE
