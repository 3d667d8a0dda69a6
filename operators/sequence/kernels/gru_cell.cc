// The loops over plain arrays are compiled once per instruction set, too, and vectorised by the
// compiler.
#include "operators/sequence/kernels/gru_cell.h"

#include "operators/sequence/kernels/used_functions.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/sequence/kernels/gru_cell.cc"
#include "hwy/foreach_target.h"
#include "operators/sequence/kernels/recurrent_activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

template <typename T, typename Before>
void ResetState(const GruCell<WideType<T>>& cell, const Before* HWY_RESTRICT before,
                const WideType<T>* HWY_RESTRICT gates, T* HWY_RESTRICT reset) {
  const int64_t size = cell.size;
  for (int64_t i = 0; i < size; ++i)
    reset[i] = static_cast<T>(gates[size + i] * static_cast<WideType<T>>(before[i]));
}

template <typename T>
void Reset(const GruCell<WideType<T>>& cell, const T* input, const WideType<T>* before,
           WideType<T>* gates, T* reset) {
  const int64_t size = cell.size;
  AddInput(input, cell.bias, 2 * size, gates);
  Activate(cell.gate, gates, 2 * size);
  ResetState(cell, before, gates, reset);
}

template <typename T>
void Forward(const GruCell<WideType<T>>& cell, const T* input, const WideType<T>* before,
             WideType<T>* HWY_RESTRICT gates, WideType<T>* after, T* hidden) {
  using Wide = WideType<T>;
  const int64_t size = cell.size;
  Wide* HWY_RESTRICT candidate = gates + 2 * size;
  AddInput(input + 2 * size, cell.bias == nullptr ? nullptr : cell.bias + 2 * size, size,
           candidate);
  Activate(cell.candidate, candidate, size);
  const Wide* from = cell.origin_mode ? candidate : before;
  const Wide* to = cell.origin_mode ? before : candidate;
  // Element i of an array is read and written for i alone.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
  for (int64_t i = 0; i < size; ++i) {
    const Wide state = (1 - gates[i]) * from[i] + gates[i] * to[i];
    after[i] = state;
    hidden[i] = static_cast<T>(state);
  }
}

template <typename T>
void Backward(const GruCell<WideType<T>>& cell, const T* HWY_RESTRICT before,
              const WideType<T>* HWY_RESTRICT gates, const GruStepGradient<T>& gradient) {
  using Wide = WideType<T>;
  const int64_t size = cell.size;
  const Wide* HWY_RESTRICT candidate = gates + 2 * size;
  const T* HWY_RESTRICT d_hidden = gradient.hidden;
  Wide* HWY_RESTRICT d_before = gradient.before;
  Wide* HWY_RESTRICT d_gates = gradient.gates;
  for (int64_t i = 0; i < size; ++i) {
    const Wide d = static_cast<Wide>(d_hidden[i]) + d_before[i];
    const Wide d_update = d * (candidate[i] - static_cast<Wide>(before[i]));
    const Wide through_update = d * gates[i];
    d_gates[i] = cell.origin_mode ? -d_update : d_update;
    d_gates[2 * size + i] = cell.origin_mode ? d - through_update : through_update;
    d_before[i] = cell.origin_mode ? through_update : d - through_update;
  }
  MultiplyByDerivative(cell.gate, gates, d_gates, size);
  MultiplyByDerivative(cell.candidate, candidate, d_gates + 2 * size, size);
}

template <typename T>
void ResetBackward(const GruCell<WideType<T>>& cell, const T* HWY_RESTRICT before,
                   const WideType<T>* HWY_RESTRICT gates,
                   const WideType<T>* HWY_RESTRICT reset_gradient,
                   const GruStepGradient<T>& gradient) {
  using Wide = WideType<T>;
  const int64_t size = cell.size;
  Wide* HWY_RESTRICT d_before = gradient.before;
  Wide* HWY_RESTRICT d_reset = gradient.gates + size;
  for (int64_t i = 0; i < size; ++i) {
    d_reset[i] = reset_gradient[i] * static_cast<Wide>(before[i]);
    d_before[i] += reset_gradient[i] * gates[size + i];
  }
  MultiplyByDerivative(cell.gate, gates + size, d_reset, size);
}

template <typename T>
GruFunctions<T> GruFunctionsOf() {
  return {.reset = Reset<T>,
          .forward = Forward<T>,
          .backward = Backward<T>,
          .reset_backward = ResetBackward<T>,
          .reset_state = ResetState<T, T>};
}
auto Functions() {
  return std::tuple(GruFunctionsOf<float>(), GruFunctionsOf<double>(), GruFunctionsOf<BFloat16>());
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
SKIFF_USED_WITH_HALF(GruFunctions);
}  // namespace skiff
#endif
