// The loops over plain arrays are compiled once per instruction set, too, and vectorised by the
// compiler.
#include "operators/sequence/kernels/lstm_cell.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/sequence/kernels/lstm_cell.cc"
#include "hwy/foreach_target.h"
#include "operators/sequence/kernels/recurrent_activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff {
namespace HWY_NAMESPACE {
namespace {

// to[i] += a[i] * b[i]
template <typename T>
void AddProduct(const T* HWY_RESTRICT a, const T* HWY_RESTRICT b, int64_t count,
                T* HWY_RESTRICT to) {
  for (int64_t i = 0; i < count; ++i) to[i] += a[i] * b[i];
}

template <typename T>
void Forward(const LstmCell<T>& cell, const T* HWY_RESTRICT input, const LstmStep<T>& step,
             T* hidden) {
  const int64_t size = cell.size;
  T* HWY_RESTRICT gates = step.gates;
  for (int64_t i = 0; i < 4 * size; ++i) gates[i] += input[i] + cell.bias[i];
  if (cell.peepholes != nullptr) {
    AddProduct(cell.peepholes, step.cell_before, size, gates + size);
    AddProduct(cell.peepholes + size, step.cell_before, size, gates + 2 * size);
  }
  Activate(cell.candidate, gates, size);
  Activate(cell.gate, gates + size, 2 * size);
  const T* HWY_RESTRICT before = step.cell_before;
  T* HWY_RESTRICT state = step.cell;
  for (int64_t i = 0; i < size; ++i)
    state[i] = gates[size + i] * gates[i] + gates[2 * size + i] * before[i];
  if (cell.peepholes != nullptr)
    AddProduct(cell.peepholes + 2 * size, step.cell, size, gates + 3 * size);
  Activate(cell.gate, gates + 3 * size, size);
  std::copy_n(step.cell, size, step.activated_cell);
  Activate(cell.cell, step.activated_cell, size);
  for (int64_t i = 0; i < size; ++i) hidden[i] = gates[3 * size + i] * step.activated_cell[i];
}

template <typename T>
void Backward(const LstmCell<T>& cell, const LstmStep<const T>& step,
              const LstmStepGradient<T>& gradient) {
  const int64_t size = cell.size;
  const T* HWY_RESTRICT gates = step.gates;
  const T* HWY_RESTRICT activated = step.activated_cell;
  const T* HWY_RESTRICT before = step.cell_before;
  T* HWY_RESTRICT d_gates = gradient.gates;
  T* HWY_RESTRICT d_cell = gradient.next_cell;
  // The gradient of cell(c) is in the place of that of g0 until its derivative is known.
  for (int64_t i = 0; i < size; ++i) {
    const T d_hidden = gradient.hidden[i] + gradient.next_hidden[i];
    d_gates[3 * size + i] = d_hidden * activated[i];
    d_gates[i] = d_hidden * gates[3 * size + i];
  }
  MultiplyByDerivative(cell.gate, gates + 3 * size, d_gates + 3 * size, size);
  MultiplyByDerivative(cell.cell, activated, d_gates, size);
  for (int64_t i = 0; i < size; ++i) d_cell[i] += d_gates[i];
  if (gradient.cell != nullptr) {
    for (int64_t i = 0; i < size; ++i) d_cell[i] += gradient.cell[i];
  }
  if (cell.peepholes != nullptr)
    AddProduct(cell.peepholes + 2 * size, d_gates + 3 * size, size, d_cell);
  for (int64_t i = 0; i < size; ++i) {
    d_gates[i] = d_cell[i] * gates[size + i];
    d_gates[size + i] = d_cell[i] * gates[i];
    d_gates[2 * size + i] = d_cell[i] * before[i];
    d_cell[i] *= gates[2 * size + i];
  }
  MultiplyByDerivative(cell.candidate, gates, d_gates, size);
  MultiplyByDerivative(cell.gate, gates + size, d_gates + size, 2 * size);
  if (cell.peepholes != nullptr) {
    AddProduct(cell.peepholes, d_gates + size, size, d_cell);
    AddProduct(cell.peepholes + size, d_gates + 2 * size, size, d_cell);
  }
}

void ForwardFloat(const LstmCell<float>& cell, const float* input, const LstmStep<float>& step,
                  float* hidden) {
  Forward(cell, input, step, hidden);
}
void ForwardDouble(const LstmCell<double>& cell, const double* input, const LstmStep<double>& step,
                   double* hidden) {
  Forward(cell, input, step, hidden);
}
void BackwardFloat(const LstmCell<float>& cell, const LstmStep<const float>& step,
                   const LstmStepGradient<float>& gradient) {
  Backward(cell, step, gradient);
}
void BackwardDouble(const LstmCell<double>& cell, const LstmStep<const double>& step,
                    const LstmStepGradient<double>& gradient) {
  Backward(cell, step, gradient);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace skiff
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(ForwardFloat);
HWY_EXPORT(ForwardDouble);
HWY_EXPORT(BackwardFloat);
HWY_EXPORT(BackwardDouble);

void LstmForward(const LstmCell<float>& cell, const float* input, const LstmStep<float>& step,
                 float* hidden) {
  HWY_DYNAMIC_DISPATCH(ForwardFloat)(cell, input, step, hidden);
}
void LstmForward(const LstmCell<double>& cell, const double* input, const LstmStep<double>& step,
                 double* hidden) {
  HWY_DYNAMIC_DISPATCH(ForwardDouble)(cell, input, step, hidden);
}
void LstmBackward(const LstmCell<float>& cell, const LstmStep<const float>& step,
                  const LstmStepGradient<float>& gradient) {
  HWY_DYNAMIC_DISPATCH(BackwardFloat)(cell, step, gradient);
}
void LstmBackward(const LstmCell<double>& cell, const LstmStep<const double>& step,
                  const LstmStepGradient<double>& gradient) {
  HWY_DYNAMIC_DISPATCH(BackwardDouble)(cell, step, gradient);
}

}  // namespace skiff
#endif
