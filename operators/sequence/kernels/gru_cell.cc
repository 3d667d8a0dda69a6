// The loops over plain arrays are compiled once per instruction set, too, and vectorised by the
// compiler.
#include "operators/sequence/kernels/gru_cell.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/sequence/kernels/gru_cell.cc"
#include "hwy/foreach_target.h"
#include "operators/sequence/kernels/recurrent_activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff {
namespace HWY_NAMESPACE {
namespace {

// gates += input + bias
template <typename T>
void AddInput(const T* HWY_RESTRICT input, const T* HWY_RESTRICT bias, int64_t count,
              T* HWY_RESTRICT gates) {
  if (bias == nullptr) {
    for (int64_t i = 0; i < count; ++i) gates[i] += input[i];
    return;
  }
  for (int64_t i = 0; i < count; ++i) gates[i] += input[i] + bias[i];
}

template <typename T>
void Reset(const GruCell<T>& cell, const T* input, const T* HWY_RESTRICT before,
           T* HWY_RESTRICT gates, T* HWY_RESTRICT reset) {
  const int64_t size = cell.size;
  AddInput(input, cell.bias, 2 * size, gates);
  Activate(cell.gate, gates, 2 * size);
  for (int64_t i = 0; i < size; ++i) reset[i] = gates[size + i] * before[i];
}

template <typename T>
void Forward(const GruCell<T>& cell, const T* input, const T* HWY_RESTRICT before,
             T* HWY_RESTRICT gates, T* HWY_RESTRICT hidden) {
  const int64_t size = cell.size;
  T* HWY_RESTRICT candidate = gates + 2 * size;
  AddInput(input + 2 * size, cell.bias == nullptr ? nullptr : cell.bias + 2 * size, size,
           candidate);
  Activate(cell.candidate, candidate, size);
  const T* from = cell.origin_mode ? candidate : before;
  const T* to = cell.origin_mode ? before : candidate;
  for (int64_t i = 0; i < size; ++i) hidden[i] = (1 - gates[i]) * from[i] + gates[i] * to[i];
}

template <typename T>
void Backward(const GruCell<T>& cell, const T* HWY_RESTRICT before, const T* HWY_RESTRICT gates,
              const GruStepGradient<T>& gradient) {
  const int64_t size = cell.size;
  const T* HWY_RESTRICT candidate = gates + 2 * size;
  const T* HWY_RESTRICT d_hidden = gradient.hidden;
  T* HWY_RESTRICT d_before = gradient.before;
  T* HWY_RESTRICT d_gates = gradient.gates;
  for (int64_t i = 0; i < size; ++i) {
    const T d = d_hidden[i] + d_before[i];
    const T d_update = d * (candidate[i] - before[i]);
    const T through_update = d * gates[i];
    d_gates[i] = cell.origin_mode ? -d_update : d_update;
    d_gates[2 * size + i] = cell.origin_mode ? d - through_update : through_update;
    d_before[i] = cell.origin_mode ? through_update : d - through_update;
  }
  MultiplyByDerivative(cell.gate, gates, d_gates, size);
  MultiplyByDerivative(cell.candidate, candidate, d_gates + 2 * size, size);
}

template <typename T>
void ResetBackward(const GruCell<T>& cell, const T* HWY_RESTRICT before,
                   const T* HWY_RESTRICT gates, const T* HWY_RESTRICT reset_gradient,
                   const GruStepGradient<T>& gradient) {
  const int64_t size = cell.size;
  T* HWY_RESTRICT d_before = gradient.before;
  T* HWY_RESTRICT d_reset = gradient.gates + size;
  for (int64_t i = 0; i < size; ++i) {
    d_reset[i] = reset_gradient[i] * before[i];
    d_before[i] += reset_gradient[i] * gates[size + i];
  }
  MultiplyByDerivative(cell.gate, gates + size, d_reset, size);
}

void ResetFloat(const GruCell<float>& cell, const float* input, const float* before, float* gates,
                float* reset) {
  Reset(cell, input, before, gates, reset);
}
void ResetDouble(const GruCell<double>& cell, const double* input, const double* before,
                 double* gates, double* reset) {
  Reset(cell, input, before, gates, reset);
}
void ForwardFloat(const GruCell<float>& cell, const float* input, const float* before, float* gates,
                  float* hidden) {
  Forward(cell, input, before, gates, hidden);
}
void ForwardDouble(const GruCell<double>& cell, const double* input, const double* before,
                   double* gates, double* hidden) {
  Forward(cell, input, before, gates, hidden);
}
void BackwardFloat(const GruCell<float>& cell, const float* before, const float* gates,
                   const GruStepGradient<float>& gradient) {
  Backward(cell, before, gates, gradient);
}
void BackwardDouble(const GruCell<double>& cell, const double* before, const double* gates,
                    const GruStepGradient<double>& gradient) {
  Backward(cell, before, gates, gradient);
}
void ResetBackwardFloat(const GruCell<float>& cell, const float* before, const float* gates,
                        const float* reset_gradient, const GruStepGradient<float>& gradient) {
  ResetBackward(cell, before, gates, reset_gradient, gradient);
}
void ResetBackwardDouble(const GruCell<double>& cell, const double* before, const double* gates,
                         const double* reset_gradient, const GruStepGradient<double>& gradient) {
  ResetBackward(cell, before, gates, reset_gradient, gradient);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace skiff
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(ResetFloat);
HWY_EXPORT(ResetDouble);
HWY_EXPORT(ForwardFloat);
HWY_EXPORT(ForwardDouble);
HWY_EXPORT(BackwardFloat);
HWY_EXPORT(BackwardDouble);
HWY_EXPORT(ResetBackwardFloat);
HWY_EXPORT(ResetBackwardDouble);

void GruReset(const GruCell<float>& cell, const float* input, const float* before, float* gates,
              float* reset) {
  HWY_DYNAMIC_DISPATCH(ResetFloat)(cell, input, before, gates, reset);
}
void GruReset(const GruCell<double>& cell, const double* input, const double* before, double* gates,
              double* reset) {
  HWY_DYNAMIC_DISPATCH(ResetDouble)(cell, input, before, gates, reset);
}
void GruForward(const GruCell<float>& cell, const float* input, const float* before, float* gates,
                float* hidden) {
  HWY_DYNAMIC_DISPATCH(ForwardFloat)(cell, input, before, gates, hidden);
}
void GruForward(const GruCell<double>& cell, const double* input, const double* before,
                double* gates, double* hidden) {
  HWY_DYNAMIC_DISPATCH(ForwardDouble)(cell, input, before, gates, hidden);
}
void GruBackward(const GruCell<float>& cell, const float* before, const float* gates,
                 const GruStepGradient<float>& gradient) {
  HWY_DYNAMIC_DISPATCH(BackwardFloat)(cell, before, gates, gradient);
}
void GruBackward(const GruCell<double>& cell, const double* before, const double* gates,
                 const GruStepGradient<double>& gradient) {
  HWY_DYNAMIC_DISPATCH(BackwardDouble)(cell, before, gates, gradient);
}
void GruResetBackward(const GruCell<float>& cell, const float* before, const float* gates,
                      const float* reset_gradient, const GruStepGradient<float>& gradient) {
  HWY_DYNAMIC_DISPATCH(ResetBackwardFloat)(cell, before, gates, reset_gradient, gradient);
}
void GruResetBackward(const GruCell<double>& cell, const double* before, const double* gates,
                      const double* reset_gradient, const GruStepGradient<double>& gradient) {
  HWY_DYNAMIC_DISPATCH(ResetBackwardDouble)(cell, before, gates, reset_gradient, gradient);
}

}  // namespace skiff
#endif
