// gru_unit: one time step of gated recurrent units for each row. kernels/gru_cell.h has the
// formula.
//
//   Gate             u r c
//   ResetHiddenPrev  r ⊙ HiddenPrev
//
// Weight is that of gru. Source: Fluid's gru_unit.
#include <string>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/cpu/reduce.h"
#include "operators/common/input_checks.h"
#include "operators/sequence/kernels/gru_unit_cell.h"
#include "operators/sequence/kernels/gru_weights.h"
#include "operators/sequence/kernels/recurrent_arguments.h"
#include "operators/sequence/kernels/workspace.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  const int64_t gates = UnitGatesWidth(context);
  const TensorMeta& before = context.Input("HiddenPrev");
  CheckInputLike(context, "Input", {before.shape[0], gates}, before.dtype);
  CheckInputLike(context, "Weight", {before.shape[1], gates}, before.dtype);
  if (context.HasInput("Bias")) CheckInputLike(context, "Bias", {1, gates}, before.dtype);
  context.SetOutput("Gate", context.Input("Input").shape, before.dtype);
  context.SetOutput("ResetHiddenPrev", before.shape, before.dtype);
  context.SetOutput("Hidden", before.shape, before.dtype);
}

double Flop(const OpContext& context) { return ProductFlop(context, "Input", {"Weight"}); }

// Calls body(row) for each row, on several threads.
template <typename Body>
void ForEachRow(int64_t rows, int64_t size, const Body& body) {
  ParallelFor(rows, RecurrentGrain(3 * size), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) body(row);
  });
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const GruCell<T> cell = UnitCell<T>(context);
  const int64_t size = cell.size;
  const GruWeights<T> weights(context, size, /*is_transposed=*/false);
  const In<T> input(context, "Input");
  const In<T> hidden_prev(context, "HiddenPrev");
  const In<T> bias(context, "Bias");
  const Out<T> gate(context, "Gate");
  const Out<T> reset_hidden(context, "ResetHiddenPrev");
  const Out<T> hidden(context, "Hidden");
  return MakeRowsKernel([=](const KernelContext& run) {
    GruCell<T> gru = cell;
    gru.bias = bias(run);
    const auto functions = GruFunctions<T>::Used();
    const int64_t rows = hidden_prev.shape(run)[0];
    const T* from = input(run);
    const T* before = hidden_prev(run);
    T* gates = gate(run);
    T* reset = reset_hidden(run);
    weights.gates.Multiply(run, before, rows, size, false, gates, 3 * size);
    ForEachRow(rows, size, [&](int64_t row) {
      functions.reset(gru, from + row * 3 * size, before + row * size, gates + row * 3 * size,
                      reset + row * size);
    });
    weights.candidate.Multiply(run, reset, rows, size, false, gates + 2 * size, 3 * size);
    ForEachRow(rows, size, [&](int64_t row) {
      T* after = hidden(run) + row * size;
      functions.forward(gru, from + row * 3 * size, before + row * size, gates + row * 3 * size,
                        after, after);
    });
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const GruCell<T> cell = UnitCell<T>(context);
  const int64_t size = cell.size;
  const int64_t most_rows = context.Input("HiddenPrev").shape[0];
  const GruWeights<T> weights(context, size, /*is_transposed=*/true);
  const In<T> hidden_prev(context, "HiddenPrev");
  const In<T> gate(context, "Gate");
  const In<T> reset_hidden(context, "ResetHiddenPrev");
  const In<T> hidden_grad(context, "Hidden@GRAD");
  const OutputOrWorkspace<T> input_grad(context, {context, "Input@GRAD"}, most_rows, 3 * size);
  const Out<T> weight_grad(context, "Weight@GRAD");
  const Out<T> bias_grad(context, "Bias@GRAD");
  const Out<T> hidden_prev_grad(context, "HiddenPrev@GRAD");
  const OutputOrWorkspace<T> before_grad(context, hidden_prev_grad, most_rows, size);
  const Workspace<T> reset_grad(context, most_rows, size);
  GruWeightGradient<T> weight_gradient(context, size, weight_grad.is_there() ? most_rows : 0);
  return MakeRowsKernel(
      [=, weight_gradient = std::move(weight_gradient)](const KernelContext& run) {
        const auto functions = GruFunctions<T>::Used();
        const int64_t rows = hidden_prev.shape(run)[0];
        const T* before = hidden_prev(run);
        const T* gates = gate(run);
        T* d_gates = input_grad(run);
        T* d_before = before_grad(run);
        T* d_reset = reset_grad(run);
        const auto gradient_of = [&](int64_t row) {
          return GruStepGradient<T>{.hidden = hidden_grad(run) + row * size,
                                    .before = d_before + row * size,
                                    .gates = d_gates + row * 3 * size};
        };
        ForEachRow(rows, size, [&](int64_t row) {
          std::fill_n(d_before + row * size, size, T{0});
          functions.backward(cell, before + row * size, gates + row * 3 * size, gradient_of(row));
        });
        weights.candidate.Multiply(run, d_gates + 2 * size, rows, 3 * size, false, d_reset, size);
        ForEachRow(rows, size, [&](int64_t row) {
          functions.reset_backward(cell, before + row * size, gates + row * 3 * size,
                                   d_reset + row * size, gradient_of(row));
        });
        if (hidden_prev_grad.is_there())
          weights.gates.Multiply(run, d_gates, rows, 3 * size, true, d_before, size);
        if (weight_grad.is_there())
          weight_gradient.Run(run, rows, before, reset_hidden(run), d_gates, weight_grad(run));
        if (bias_grad.is_there())
          AxisReduction({rows, 3 * size}, {true, false}).Sum(d_gates, bias_grad(run));
      });
}

std::vector<AttrDef> Attributes() {
  const auto is_known = [](const Attribute& value) {
    return std::get<int32_t>(value) >= 0 && std::get<int32_t>(value) <= 3;
  };
  const std::string expected = "0 (identity), 1 (sigmoid), 2 (tanh) or 3 (relu)";
  return {{.name = "activation",
           .type = AttrType::kInt,
           .default_value = 2,
           .doc = "Of c.",
           .accepts = is_known,
           .expected = expected},
          {.name = "gate_activation",
           .type = AttrType::kInt,
           .default_value = 1,
           .doc = "Of u and r.",
           .accepts = is_known,
           .expected = expected},
          {.name = "origin_mode",
           .type = AttrType::kBool,
           .default_value = false,
           .doc = "Whether u is the share of the old state, not of c."}};
}

void AddGrad(OpRegistry& registry, OpDef* forward) {
  OpDef def = GradientOf(forward,
                         {ForShape("Input"), "HiddenPrev", "Weight", ForShape("Bias"), "Gate",
                          "ResetHiddenPrev", "Hidden@GRAD"},
                         {"Input@GRAD", "HiddenPrev@GRAD", "Weight@GRAD", "Bias@GRAD"});
  def.doc = "The gradients of a step of gated recurrent units.";
  def.flop = GradFlop(Flop, {"Input@GRAD", "Weight@GRAD"});
  def.rows = RowRule{.inputs = {"HiddenPrev", "Gate", "ResetHiddenPrev", "Hidden@GRAD"},
                     .outputs = {"Input@GRAD", "HiddenPrev@GRAD"},
                     .sums = {"Weight@GRAD", "Bias@GRAD"},
                     .sums_by = "gru_unit_weight_grad"};
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>(
      "gru_unit_grad", []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace

void RegisterGruUnit(OpRegistry& registry) {
  OpDef def;
  def.type = "gru_unit";
  def.doc = "One time step of gated recurrent units for each row.";
  def.inputs = {
      {.name = "Input", .doc = "[rows, 3H]: for u, r and c, multiplied with the layer's weights."},
      {.name = "HiddenPrev", .doc = "[rows, H]: the hidden state before."},
      {.name = "Weight",
       .doc = "[H, 3H]: a matrix [H, 2H] of the hidden state for u and r, and after it "
              "one [H, H] of the reset state for c."},
      {.name = "Bias", .doc = "[1, 3H]; 0 if absent.", .dispensable = true}};
  def.outputs = {
      {.name = "Gate",
       .doc = "[rows, 3H]: u, r and c.",
       .intermediate = true,
       .keeps_float32 = true},
      {.name = "ResetHiddenPrev", .doc = "[rows, H]: HiddenPrev times r.", .intermediate = true},
      {.name = "Hidden", .doc = "[rows, H]."}};
  def.attrs = Attributes();
  def.infer = Infer;
  def.precision = Precision::kLow;
  def.flop = Flop;
  AddGrad(registry, &def);
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>(
      "gru_unit", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
}

}  // namespace skiff
