// lstm_unit: one time step of a long short-term memory for each row, whose gates are given.
//
//   [i f o g] = X, four blocks of D numbers
//   C = σ(f + forget_bias) ⊙ C_prev + σ(i) ⊙ tanh(g)
//   H = σ(o) ⊙ tanh(C)
//
// Source: Fluid's lstm_unit.
//
// The gradient computes the gates again.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/sequence/kernels/lstm_unit_functions.h"
#include "operators/sequence/kernels/recurrent_weight.h"
#include "operators/sequence/kernels/used_functions.h"
#include "operators/sequence/kernels/workspace.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/sequence/lstm_unit.cc"
#include "hwy/foreach_target.h"
#include "operators/sequence/kernels/recurrent_activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

// Sets `gates` to σ(i) σ(f + forget_bias) σ(o) tanh(g).
template <typename T>
void ComputeGates(int64_t size, const T* HWY_RESTRICT x, T forget_bias, T* HWY_RESTRICT gates) {
  std::copy_n(x, 4 * size, gates);
  for (int64_t i = size; i < 2 * size; ++i) gates[i] += forget_bias;
  Activate(RecurrentActivation::kSigmoid, gates, 3 * size);
  Activate(RecurrentActivation::kTanh, gates + 3 * size, size);
}

template <typename T>
void Forward(int64_t size, const T* x, const T* HWY_RESTRICT before, T forget_bias,
             T* HWY_RESTRICT gates, T* HWY_RESTRICT cell, T* HWY_RESTRICT hidden) {
  ComputeGates(size, x, forget_bias, gates);
  for (int64_t i = 0; i < size; ++i)
    hidden[i] = cell[i] = gates[size + i] * before[i] + gates[i] * gates[3 * size + i];
  Activate(RecurrentActivation::kTanh, hidden, size);
  for (int64_t i = 0; i < size; ++i) hidden[i] *= gates[2 * size + i];
}

template <typename T>
void Backward(int64_t size, const T* x, const T* HWY_RESTRICT before, const T* cell, T forget_bias,
              const T* HWY_RESTRICT d_cell, const T* HWY_RESTRICT d_hidden, T* HWY_RESTRICT gates,
              T* HWY_RESTRICT d_x, T* HWY_RESTRICT d_before) {
  ComputeGates(size, x, forget_bias, gates);
  // The place of d_before holds tanh(C) at first.
  std::copy_n(cell, size, d_before);
  Activate(RecurrentActivation::kTanh, d_before, size);
  for (int64_t i = 0; i < size; ++i) {
    const T squashed = d_before[i];
    const T d = d_cell[i] + d_hidden[i] * gates[2 * size + i] * (1 - squashed * squashed);
    d_x[i] = d * gates[3 * size + i];
    d_x[size + i] = d * before[i];
    d_x[2 * size + i] = d_hidden[i] * squashed;
    d_x[3 * size + i] = d * gates[i];
    d_before[i] = d * gates[size + i];
  }
  MultiplyByDerivative(RecurrentActivation::kSigmoid, gates, d_x, 3 * size);
  MultiplyByDerivative(RecurrentActivation::kTanh, gates + 3 * size, d_x + 3 * size, size);
}

template <typename T>
LstmUnitFunctions<T> UnitFunctionsOf() {
  return {.forward = Forward<T>, .backward = Backward<T>};
}
auto Functions() { return std::pair(UnitFunctionsOf<float>(), UnitFunctionsOf<double>()); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

SKIFF_USED_FUNCTIONS(LstmUnitFunctions);

namespace {

void Infer(OpContext& context) {
  const TensorMeta& before = context.Input("C_prev");
  SKIFF_ENFORCE(before.shape.rank() == 2, kInvalidArgument, context.op().type, ": C_prev is ",
                before.shape, ", expected a matrix");
  const int64_t size = before.shape[1];
  CheckInputLike(context, "X", {before.shape[0], size < 0 ? -1 : MultiplyCounts(size, 4)},
                 before.dtype);
  for (const char* slot : {"C", "H"}) context.SetOutput(slot, before.shape, before.dtype);
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const int64_t most_rows = context.Input("C_prev").shape[0];
  const int64_t size = context.Input("C_prev").shape[1];
  const In<T> x(context, "X");
  const In<T> before(context, "C_prev");
  const Out<T> cell(context, "C");
  const Out<T> hidden(context, "H");
  const Workspace<T> gates(context, most_rows, 4 * size);
  const auto forget_bias = static_cast<T>(context.Attr<float>("forget_bias"));
  return MakeRowsKernel([=](const KernelContext& run) {
    const auto functions = LstmUnitFunctions<T>::Used();
    const T* xs = x(run);
    const T* cells_before = before(run);
    T* of_gates = gates(run);
    T* cells = cell(run);
    T* states = hidden(run);
    ParallelFor(before.shape(run)[0], RecurrentGrain(4 * size), [=](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t at = row * size;
        functions.forward(size, xs + 4 * at, cells_before + at, forget_bias, of_gates + 4 * at,
                          cells + at, states + at);
      }
    });
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const int64_t most_rows = context.Input("C_prev").shape[0];
  const int64_t size = context.Input("C_prev").shape[1];
  const In<T> x(context, "X");
  const In<T> before(context, "C_prev");
  const In<T> cell(context, "C");
  const In<T> cell_grad(context, "C@GRAD");
  const In<T> hidden_grad(context, "H@GRAD");
  const OutputOrWorkspace<T> x_grad(context, {context, "X@GRAD"}, most_rows, 4 * size);
  const OutputOrWorkspace<T> before_grad(context, {context, "C_prev@GRAD"}, most_rows, size);
  const Workspace<T> gates(context, most_rows, 4 * size);
  const auto forget_bias = static_cast<T>(context.Attr<float>("forget_bias"));
  return MakeRowsKernel([=](const KernelContext& run) {
    const auto functions = LstmUnitFunctions<T>::Used();
    const T* xs = x(run);
    const T* cells_before = before(run);
    const T* cells = cell(run);
    const T* d_cells = cell_grad(run);
    const T* d_states = hidden_grad(run);
    T* of_gates = gates(run);
    T* d_xs = x_grad(run);
    T* d_before = before_grad(run);
    ParallelFor(before.shape(run)[0], RecurrentGrain(4 * size), [=](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t at = row * size;
        functions.backward(size, xs + 4 * at, cells_before + at, cells + at, forget_bias,
                           d_cells + at, d_states + at, of_gates + 4 * at, d_xs + 4 * at,
                           d_before + at);
      }
    });
  });
}

std::vector<AttrDef> Attributes() {
  return {{.name = "forget_bias",
           .type = AttrType::kFloat,
           .default_value = 0.0f,
           .doc = "Is added to f."}};
}

void AddGrad(OpRegistry& registry, OpDef* forward) {
  OpDef def = GradientOf(forward, {"X", "C_prev", "C", Optional(ForShape("H")), "C@GRAD", "H@GRAD"},
                         {"X@GRAD", "C_prev@GRAD"});
  def.doc = "The gradients of a step of a long short-term memory.";
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>("lstm_unit_grad", []<typename T>(PrepareContext& context) {
    return PrepareGrad<T>(context);
  });
}

}  // namespace

void RegisterLstmUnit(OpRegistry& registry) {
  OpDef def;
  def.type = "lstm_unit";
  def.doc = "One time step of a long short-term memory for each row, whose gates are given.";
  def.inputs = {{.name = "X", .doc = "[rows, 4D]: i, f, o and g."},
                {.name = "C_prev", .doc = "[rows, D]: the cell before.", .keeps_float32 = true}};
  def.outputs = {{.name = "C", .doc = "[rows, D]: the cell.", .keeps_float32 = true},
                 {.name = "H", .doc = "[rows, D]: the hidden state."}};
  def.attrs = Attributes();
  def.infer = Infer;
  // Element-wise: the product before it decides.
  def.precision = Precision::kFollow;
  AddGrad(registry, &def);
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>(
      "lstm_unit", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
}

}  // namespace skiff
#endif  // HWY_ONCE
