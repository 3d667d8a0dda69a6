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
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/sequence/kernels/recurrent_weight.h"

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

// d_before must be there; d_cell and d_hidden are the gradients of C and H.
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

void ForwardFloat(int64_t size, const float* x, const float* before, float forget_bias,
                  float* gates, float* cell, float* hidden) {
  Forward(size, x, before, forget_bias, gates, cell, hidden);
}
void ForwardDouble(int64_t size, const double* x, const double* before, double forget_bias,
                   double* gates, double* cell, double* hidden) {
  Forward(size, x, before, forget_bias, gates, cell, hidden);
}
void BackwardFloat(int64_t size, const float* x, const float* before, const float* cell,
                   float forget_bias, const float* d_cell, const float* d_hidden, float* gates,
                   float* d_x, float* d_before) {
  Backward(size, x, before, cell, forget_bias, d_cell, d_hidden, gates, d_x, d_before);
}
void BackwardDouble(int64_t size, const double* x, const double* before, const double* cell,
                    double forget_bias, const double* d_cell, const double* d_hidden, double* gates,
                    double* d_x, double* d_before) {
  Backward(size, x, before, cell, forget_bias, d_cell, d_hidden, gates, d_x, d_before);
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(ForwardFloat);
HWY_EXPORT(ForwardDouble);
HWY_EXPORT(BackwardFloat);
HWY_EXPORT(BackwardDouble);

namespace {

template <typename T, typename... Arguments>
void ForwardRow(Arguments... arguments) {
  if constexpr (std::is_same_v<T, float>) {
    HWY_DYNAMIC_DISPATCH(ForwardFloat)(arguments...);
  } else {
    HWY_DYNAMIC_DISPATCH(ForwardDouble)(arguments...);
  }
}

template <typename T, typename... Arguments>
void BackwardRow(Arguments... arguments) {
  if constexpr (std::is_same_v<T, float>) {
    HWY_DYNAMIC_DISPATCH(BackwardFloat)(arguments...);
  } else {
    HWY_DYNAMIC_DISPATCH(BackwardDouble)(arguments...);
  }
}

// Checks the arguments that the op and its gradient have in common.
void CheckArguments(const OpContext& context) {
  const TensorMeta& before = context.Input("C_prev");
  SKIFF_ENFORCE(before.shape.rank() == 2, kInvalidArgument, context.op().type, ": C_prev is ",
                before.shape, ", expected a matrix");
  const int64_t size = before.shape[1];
  CheckInputLike(context, "X", {before.shape[0], size < 0 ? -1 : MultiplyCounts(size, 4)},
                 before.dtype);
}

void Infer(OpContext& context) {
  CheckArguments(context);
  const TensorMeta& before = context.Input("C_prev");
  for (const char* slot : {"C", "H"}) context.SetOutput(slot, before.shape, before.dtype);
}

void InferGrad(OpContext& context) {
  CheckArguments(context);
  const TensorMeta& before = context.Input("C_prev");
  for (const char* slot : {"C", "H", "C@GRAD", "H@GRAD"}) {
    if (context.HasInput(slot)) CheckInputLike(context, slot, before.shape, before.dtype);
  }
  for (const std::string slot : {"X", "C_prev"}) context.SetOutputLike(slot + "@GRAD", slot);
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const int64_t most_rows = context.Input("C_prev").shape[0];
  const int64_t size = context.Input("C_prev").shape[1];
  const int gates_workspace = RequestNumbers<T>(context, most_rows, 4 * size);
  const auto forget_bias = static_cast<T>(context.Attr<float>("forget_bias"));
  return MakeRowsKernel([=, x = context.InputIndex("X"), before = context.InputIndex("C_prev"),
                         cell = context.OutputIndex("C"),
                         hidden = context.OutputIndex("H")](const KernelContext& run) {
    const int64_t rows = run.input(before).shape()[0];
    const T* x_data = run.input(x).data<T>();
    const T* before_data = run.input(before).data<T>();
    auto* gates = static_cast<T*>(run.workspace(gates_workspace));
    T* cell_data = run.output(cell).data<T>();
    T* hidden_data = run.output(hidden).data<T>();
    ParallelFor(rows, RecurrentGrain(4 * size), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        ForwardRow<T>(size, x_data + row * 4 * size, before_data + row * size, forget_bias,
                      gates + row * 4 * size, cell_data + row * size, hidden_data + row * size);
      }
    });
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const int64_t most_rows = context.Input("C_prev").shape[0];
  const int64_t size = context.Input("C_prev").shape[1];
  const int x_grad = context.OutputIndex("X@GRAD");
  const int before_grad = context.OutputIndex("C_prev@GRAD");
  const int gates_workspace = RequestNumbers<T>(context, most_rows, 4 * size);
  // In place of outputs that aren't wanted.
  const int x_workspace = RequestNumbers<T>(context, x_grad < 0 ? most_rows : 0, 4 * size);
  const int before_workspace = RequestNumbers<T>(context, before_grad < 0 ? most_rows : 0, size);
  const auto forget_bias = static_cast<T>(context.Attr<float>("forget_bias"));
  return MakeRowsKernel([=, x = context.InputIndex("X"), before = context.InputIndex("C_prev"),
                         cell = context.InputIndex("C"), cell_grad = context.InputIndex("C@GRAD"),
                         hidden_grad = context.InputIndex("H@GRAD")](const KernelContext& run) {
    const int64_t rows = run.input(before).shape()[0];
    const T* x_data = run.input(x).data<T>();
    const T* before_data = run.input(before).data<T>();
    const T* cell_data = run.input(cell).data<T>();
    const T* d_cell = run.input(cell_grad).data<T>();
    const T* d_hidden = run.input(hidden_grad).data<T>();
    auto* gates = static_cast<T*>(run.workspace(gates_workspace));
    T* d_x =
        x_grad < 0 ? static_cast<T*>(run.workspace(x_workspace)) : run.output(x_grad).data<T>();
    T* d_before = before_grad < 0 ? static_cast<T*>(run.workspace(before_workspace))
                                  : run.output(before_grad).data<T>();
    ParallelFor(rows, RecurrentGrain(4 * size), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        BackwardRow<T>(size, x_data + row * 4 * size, before_data + row * size,
                       cell_data + row * size, forget_bias, d_cell + row * size,
                       d_hidden + row * size, gates + row * 4 * size, d_x + row * 4 * size,
                       d_before + row * size);
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
  def.infer = InferGrad;
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
                {.name = "C_prev", .doc = "[rows, D]: the cell before."}};
  def.outputs = {{.name = "C", .doc = "[rows, D]: the cell."},
                 {.name = "H", .doc = "[rows, D]: the hidden state."}};
  def.attrs = Attributes();
  def.infer = Infer;
  AddGrad(registry, &def);
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>(
      "lstm_unit", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
}

}  // namespace skiff
#endif  // HWY_ONCE
