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

template <typename T>
GruFunctions<T> GruFunctionsOf() {
  return {.reset = Reset<T>,
          .forward = Forward<T>,
          .backward = Backward<T>,
          .reset_backward = ResetBackward<T>};
}
auto Functions() { return std::pair(GruFunctionsOf<float>(), GruFunctionsOf<double>()); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
SKIFF_USED_FUNCTIONS(GruFunctions);
}  // namespace skiff
#endif
