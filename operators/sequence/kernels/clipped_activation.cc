#include "operators/sequence/kernels/clipped_activation.h"

#include "operators/sequence/kernels/used_functions.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/sequence/kernels/clipped_activation.cc"
#include "hwy/foreach_target.h"
#include "operators/sequence/kernels/recurrent_activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

template <typename T>
void ActivateClipped(const ClippedActivation<T>& activation, T* x, int64_t count) {
  Activate(activation.f, x, count);
  if (activation.limit > 0) Clip(activation.limit, x, count);
}

template <typename T>
void MultiplyByClipped(const ClippedActivation<T>& activation, const T* y, T* gradient,
                       int64_t count) {
  if (activation.limit > 0) DropClipped(activation.limit, y, gradient, count);
  MultiplyByDerivative(activation.f, y, gradient, count);
}

template <typename T>
ClippedFunctions<T> ClippedFunctionsOf() {
  return {.activate = ActivateClipped<T>, .multiply_by_derivative = MultiplyByClipped<T>};
}
auto Functions() { return std::pair(ClippedFunctionsOf<float>(), ClippedFunctionsOf<double>()); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
SKIFF_USED_FUNCTIONS(ClippedFunctions);
}  // namespace skiff
#endif
