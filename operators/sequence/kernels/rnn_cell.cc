// The loops over plain arrays are compiled once per instruction set, too, and vectorised by the
// compiler.
#include "operators/sequence/kernels/rnn_cell.h"

#include "operators/sequence/kernels/used_functions.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/sequence/kernels/rnn_cell.cc"
#include "hwy/foreach_target.h"
#include "operators/sequence/kernels/recurrent_activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

template <typename T>
void GruForward(const ResetAfterGruCell<T>& cell, const T* HWY_RESTRICT before,
                T* HWY_RESTRICT gates, T* HWY_RESTRICT hidden) {
  const int64_t size = cell.size;
  const T* HWY_RESTRICT bias = cell.bias;
  const T* HWY_RESTRICT product = gates + 2 * size;
  T* HWY_RESTRICT candidate = gates + 3 * size;
  for (int64_t i = 0; i < 4 * size; ++i) gates[i] += bias[i];
  Activate(RecurrentActivation::kSigmoid, gates, 2 * size);
  for (int64_t i = 0; i < size; ++i) candidate[i] += gates[i] * product[i];
  Activate(RecurrentActivation::kTanh, candidate, size);
  for (int64_t i = 0; i < size; ++i)
    hidden[i] = (1 - gates[size + i]) * candidate[i] + gates[size + i] * before[i];
}

template <typename T>
void GruBackward(const ResetAfterGruCell<T>& cell, const T* HWY_RESTRICT before,
                 const T* HWY_RESTRICT gates, const RnnStepGradient<T>& gradient) {
  const int64_t size = cell.size;
  const T* HWY_RESTRICT reset = gates;
  const T* HWY_RESTRICT update = gates + size;
  const T* HWY_RESTRICT product = gates + 2 * size;
  const T* HWY_RESTRICT candidate = gates + 3 * size;
  const T* HWY_RESTRICT d_hidden = gradient.hidden;
  T* HWY_RESTRICT d_next = gradient.next;
  T* HWY_RESTRICT d_gates = gradient.gates;
  T* HWY_RESTRICT d_product = gradient.gates + 2 * size;
  T* HWY_RESTRICT d_candidate = gradient.gates + 3 * size;
  for (int64_t i = 0; i < size; ++i) {
    const T d = d_hidden[i] + d_next[i];
    d_gates[size + i] = d * (before[i] - candidate[i]);
    d_candidate[i] = d * (1 - update[i]);
    d_next[i] = d * update[i];
  }
  MultiplyByDerivative(RecurrentActivation::kTanh, candidate, d_candidate, size);
  for (int64_t i = 0; i < size; ++i) {
    d_gates[i] = d_candidate[i] * product[i];
    d_product[i] = d_candidate[i] * reset[i];
  }
  MultiplyByDerivative(RecurrentActivation::kSigmoid, gates, d_gates, 2 * size);
}

template <typename T>
void SimpleForward(const SimpleRnnCell<T>& cell, const T* HWY_RESTRICT gates,
                   T* HWY_RESTRICT hidden) {
  const T* HWY_RESTRICT bias = cell.bias;
  for (int64_t i = 0; i < cell.size; ++i) hidden[i] = gates[i] + bias[i];
  Activate(cell.activation, hidden, cell.size);
}

template <typename T>
void SimpleBackward(const SimpleRnnCell<T>& cell, const T* hidden,
                    const RnnStepGradient<T>& gradient) {
  const T* HWY_RESTRICT d_hidden = gradient.hidden;
  const T* HWY_RESTRICT d_next = gradient.next;
  T* HWY_RESTRICT d_gates = gradient.gates;
  for (int64_t i = 0; i < cell.size; ++i) d_gates[i] = d_hidden[i] + d_next[i];
  MultiplyByDerivative(cell.activation, hidden, gradient.gates, cell.size);
}

template <typename T>
RnnFunctions<T> RnnFunctionsOf() {
  return {.gru_forward = GruForward<T>,
          .gru_backward = GruBackward<T>,
          .simple_forward = SimpleForward<T>,
          .simple_backward = SimpleBackward<T>};
}
auto Functions() { return std::pair(RnnFunctionsOf<float>(), RnnFunctionsOf<double>()); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
SKIFF_USED_FUNCTIONS(RnnFunctions);
}  // namespace skiff
#endif
