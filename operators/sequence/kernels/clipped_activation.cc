#include "operators/sequence/kernels/clipped_activation.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/sequence/kernels/clipped_activation.cc"
#include "hwy/foreach_target.h"
#include "operators/sequence/kernels/recurrent_activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff {
namespace HWY_NAMESPACE {
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

void ActivateFloat(const ClippedActivation<float>& activation, float* x, int64_t count) {
  ActivateClipped(activation, x, count);
}
void ActivateDouble(const ClippedActivation<double>& activation, double* x, int64_t count) {
  ActivateClipped(activation, x, count);
}
void DerivativeFloat(const ClippedActivation<float>& activation, const float* y, float* gradient,
                     int64_t count) {
  MultiplyByClipped(activation, y, gradient, count);
}
void DerivativeDouble(const ClippedActivation<double>& activation, const double* y,
                      double* gradient, int64_t count) {
  MultiplyByClipped(activation, y, gradient, count);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace skiff
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(ActivateFloat);
HWY_EXPORT(ActivateDouble);
HWY_EXPORT(DerivativeFloat);
HWY_EXPORT(DerivativeDouble);

void Activate(const ClippedActivation<float>& activation, float* x, int64_t count) {
  HWY_DYNAMIC_DISPATCH(ActivateFloat)(activation, x, count);
}
void Activate(const ClippedActivation<double>& activation, double* x, int64_t count) {
  HWY_DYNAMIC_DISPATCH(ActivateDouble)(activation, x, count);
}
void MultiplyByDerivative(const ClippedActivation<float>& activation, const float* y,
                          float* gradient, int64_t count) {
  HWY_DYNAMIC_DISPATCH(DerivativeFloat)(activation, y, gradient, count);
}
void MultiplyByDerivative(const ClippedActivation<double>& activation, const double* y,
                          double* gradient, int64_t count) {
  HWY_DYNAMIC_DISPATCH(DerivativeDouble)(activation, y, gradient, count);
}

}  // namespace skiff
#endif
