// The loops over plain arrays are compiled once per instruction set, too, and vectorised by the
// compiler.
#include "operators/sequence/kernels/lstm_cell.h"

#include "operators/sequence/kernels/used_functions.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/sequence/kernels/lstm_cell.cc"
#include "hwy/foreach_target.h"
#include "operators/sequence/kernels/recurrent_activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

// to[i] += a[i] * b[i]
template <typename T>
void AddProduct(const T* HWY_RESTRICT a, const T* HWY_RESTRICT b, int64_t count,
                T* HWY_RESTRICT to) {
  for (int64_t i = 0; i < count; ++i) to[i] += a[i] * b[i];
}

template <typename T>
void Forward(const LstmCell<WideType<T>>& cell, const T* input, const LstmStep<WideType<T>>& step,
             T* hidden) {
  using Wide = WideType<T>;
  const int64_t size = cell.size;
  AddInput(input, cell.bias, 4 * size, step.gates);
  Wide* HWY_RESTRICT candidate = step.gates + cell.order.candidate * size;
  Wide* HWY_RESTRICT input_gate = step.gates + cell.order.input * size;
  Wide* HWY_RESTRICT forget_gate = step.gates + cell.order.forget * size;
  Wide* HWY_RESTRICT output_gate = step.gates + cell.order.output * size;
  if (cell.peepholes != nullptr) {
    AddProduct(cell.peepholes, step.cell_before, size, input_gate);
    AddProduct(cell.peepholes + size, step.cell_before, size, forget_gate);
  }
  Activate(cell.candidate, candidate, size);
  Activate(cell.gate, input_gate, size);
  Activate(cell.gate, forget_gate, size);
  const Wide* HWY_RESTRICT before = step.cell_before;
  Wide* HWY_RESTRICT state = step.cell;
  for (int64_t i = 0; i < size; ++i)
    state[i] = input_gate[i] * candidate[i] + forget_gate[i] * before[i];
  if (cell.cell_clip > 0) Clip(cell.cell_clip, step.cell, size);
  if (cell.peepholes != nullptr)
    AddProduct(cell.peepholes + 2 * size, step.cell, size, output_gate);
  Activate(cell.gate, output_gate, size);
  std::copy_n(step.cell, size, step.activated_cell);
  Activate(cell.cell, step.activated_cell, size);
  for (int64_t i = 0; i < size; ++i)
    hidden[i] = static_cast<T>(output_gate[i] * step.activated_cell[i]);
}

template <typename T>
void Backward(const LstmCell<WideType<T>>& cell, const LstmStep<const WideType<T>>& step,
              const LstmStepGradient<T>& gradient) {
  using Wide = WideType<T>;
  const int64_t size = cell.size;
  const LstmGateOrder& order = cell.order;
  const Wide* HWY_RESTRICT candidate = step.gates + order.candidate * size;
  const Wide* HWY_RESTRICT input_gate = step.gates + order.input * size;
  const Wide* HWY_RESTRICT forget_gate = step.gates + order.forget * size;
  const Wide* HWY_RESTRICT output_gate = step.gates + order.output * size;
  const Wide* HWY_RESTRICT activated = step.activated_cell;
  const Wide* HWY_RESTRICT before = step.cell_before;
  Wide* HWY_RESTRICT d_candidate = gradient.gates + order.candidate * size;
  Wide* HWY_RESTRICT d_input = gradient.gates + order.input * size;
  Wide* HWY_RESTRICT d_forget = gradient.gates + order.forget * size;
  Wide* HWY_RESTRICT d_output = gradient.gates + order.output * size;
  Wide* HWY_RESTRICT d_cell = gradient.next_cell;
  // The gradient of cell(c) is in the place of that of c~ until its derivative is known.
  for (int64_t i = 0; i < size; ++i) {
    const Wide d_hidden = static_cast<Wide>(gradient.hidden[i]) + gradient.next_hidden[i];
    d_output[i] = d_hidden * activated[i];
    d_candidate[i] = d_hidden * output_gate[i];
  }
  MultiplyByDerivative(cell.gate, output_gate, d_output, size);
  MultiplyByDerivative(cell.cell, activated, d_candidate, size);
  for (int64_t i = 0; i < size; ++i) d_cell[i] += d_candidate[i];
  if (gradient.cell != nullptr) {
    for (int64_t i = 0; i < size; ++i) d_cell[i] += gradient.cell[i];
  }
  if (cell.peepholes != nullptr) AddProduct(cell.peepholes + 2 * size, d_output, size, d_cell);
  if (cell.cell_clip > 0) DropClipped(cell.cell_clip, step.cell, d_cell, size);
  for (int64_t i = 0; i < size; ++i) {
    d_candidate[i] = d_cell[i] * input_gate[i];
    d_input[i] = d_cell[i] * candidate[i];
    d_forget[i] = d_cell[i] * before[i];
    d_cell[i] *= forget_gate[i];
  }
  MultiplyByDerivative(cell.candidate, candidate, d_candidate, size);
  MultiplyByDerivative(cell.gate, input_gate, d_input, size);
  MultiplyByDerivative(cell.gate, forget_gate, d_forget, size);
  if (cell.peepholes != nullptr) {
    AddProduct(cell.peepholes, d_input, size, d_cell);
    AddProduct(cell.peepholes + size, d_forget, size, d_cell);
  }
}

template <typename T>
LstmFunctions<T> LstmFunctionsOf() {
  return {.forward = Forward<T>, .backward = Backward<T>};
}
auto Functions() {
  return std::tuple(LstmFunctionsOf<float>(), LstmFunctionsOf<double>(),
                    LstmFunctionsOf<BFloat16>());
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
SKIFF_USED_WITH_HALF(LstmFunctions);
}  // namespace skiff
#endif
