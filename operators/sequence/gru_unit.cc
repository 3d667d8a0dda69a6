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
#include "operators/common/input_checks.h"
#include "operators/common/reduce.h"
#include "operators/sequence/kernels/gru_cell.h"
#include "operators/sequence/kernels/gru_weights.h"
#include "operators/sequence/kernels/numbered_activation.h"

namespace skiff {
namespace {

// Checks the arguments that the op and its gradient have in common.
void CheckArguments(const OpContext& context) {
  const TensorMeta& before = context.Input("HiddenPrev");
  SKIFF_ENFORCE(before.shape.rank() == 2, kInvalidArgument, context.op().type, ": HiddenPrev is ",
                before.shape, ", expected a matrix");
  const int64_t size = before.shape[1];
  const int64_t gates = size < 0 ? -1 : MultiplyCounts(size, 3);
  CheckInputLike(context, "Input", {before.shape[0], gates}, before.dtype);
  CheckInputLike(context, "Weight", {size, gates}, before.dtype);
  if (context.HasInput("Bias")) CheckInputLike(context, "Bias", {1, gates}, before.dtype);
}

void Infer(OpContext& context) {
  CheckArguments(context);
  const TensorMeta& before = context.Input("HiddenPrev");
  context.SetOutput("Gate", context.Input("Input").shape, before.dtype);
  context.SetOutput("ResetHiddenPrev", before.shape, before.dtype);
  context.SetOutput("Hidden", before.shape, before.dtype);
}

void InferGrad(OpContext& context) {
  CheckArguments(context);
  const TensorMeta& before = context.Input("HiddenPrev");
  CheckInputLike(context, "Gate", context.Input("Input").shape, before.dtype);
  CheckInputLike(context, "ResetHiddenPrev", before.shape, before.dtype);
  CheckInputLike(context, "Hidden@GRAD", before.shape, before.dtype);
  for (const std::string slot : {"Input", "HiddenPrev", "Weight", "Bias"}) {
    if (context.HasInput(slot)) context.SetOutputLike(slot + "@GRAD", slot);
  }
}

double Flop(const OpContext& context) {
  const Shape& weight = context.Input("Weight").shape;
  return 2.0 * static_cast<double>(context.Input("Input").shape[0]) *
         static_cast<double>(weight[0]) * static_cast<double>(weight[1]);
}

template <typename T>
GruCell<T> CellOf(const OpContext& context) {
  return {.size = context.Input("HiddenPrev").shape[1],
          .gate = NumberedActivation(context, "gate_activation"),
          .candidate = NumberedActivation(context, "activation"),
          .origin_mode = context.Attr<bool>("origin_mode")};
}

// Calls body(row) for each row, on several threads.
template <typename Body>
void ForEachRow(int64_t rows, int64_t size, const Body& body) {
  ParallelFor(rows, RecurrentGrain(3 * size), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) body(row);
  });
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const GruCell<T> cell = CellOf<T>(context);
  const GruWeights<T> weights(context, cell.size, /*is_transposed=*/false);
  return MakeRowsKernel([=, input = context.InputIndex("Input"),
                         hidden_prev = context.InputIndex("HiddenPrev"),
                         bias = context.InputIndex("Bias"), gate = context.OutputIndex("Gate"),
                         reset_hidden = context.OutputIndex("ResetHiddenPrev"),
                         hidden = context.OutputIndex("Hidden")](const KernelContext& run) {
    const int64_t size = cell.size;
    GruCell<T> gru = cell;
    if (bias >= 0) gru.bias = run.input(bias).data<T>();
    const int64_t rows = run.input(hidden_prev).shape()[0];
    const T* from = run.input(input).data<T>();
    const T* before = run.input(hidden_prev).data<T>();
    T* gates = run.output(gate).data<T>();
    T* reset = run.output(reset_hidden).data<T>();
    T* to = run.output(hidden).data<T>();
    weights.gates.Multiply(run, before, rows, size, false, gates, 3 * size);
    ForEachRow(rows, size, [&](int64_t row) {
      GruReset(gru, from + row * 3 * size, before + row * size, gates + row * 3 * size,
               reset + row * size);
    });
    weights.candidate.Multiply(run, reset, rows, size, false, gates + 2 * size, 3 * size);
    ForEachRow(rows, size, [&](int64_t row) {
      GruForward(gru, from + row * 3 * size, before + row * size, gates + row * 3 * size,
                 to + row * size);
    });
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const GruCell<T> cell = CellOf<T>(context);
  const GruWeights<T> weights(context, cell.size, /*is_transposed=*/true);
  const int64_t most_rows = context.Input("HiddenPrev").shape[0];
  const int weight_grad = context.OutputIndex("Weight@GRAD");
  const int input_grad = context.OutputIndex("Input@GRAD");
  const int hidden_prev_grad = context.OutputIndex("HiddenPrev@GRAD");
  GruWeightGradient<T> weight_gradient(context, cell.size, weight_grad < 0 ? 0 : most_rows);
  // In place of outputs that aren't wanted.
  const int gates_workspace =
      RequestNumbers<T>(context, input_grad < 0 ? most_rows : 0, 3 * cell.size);
  const int before_workspace =
      RequestNumbers<T>(context, hidden_prev_grad < 0 ? most_rows : 0, cell.size);
  const int reset_workspace = RequestNumbers<T>(context, most_rows, cell.size);
  return MakeRowsKernel([=, weight_gradient = std::move(weight_gradient),
                         hidden_prev = context.InputIndex("HiddenPrev"),
                         gate = context.InputIndex("Gate"),
                         reset_hidden = context.InputIndex("ResetHiddenPrev"),
                         hidden_grad = context.InputIndex("Hidden@GRAD"),
                         bias_grad = context.OutputIndex("Bias@GRAD")](const KernelContext& run) {
    const int64_t size = cell.size;
    const int64_t rows = run.input(hidden_prev).shape()[0];
    const T* before = run.input(hidden_prev).data<T>();
    const T* gates = run.input(gate).data<T>();
    const T* d_hidden = run.input(hidden_grad).data<T>();
    T* d_gates = input_grad < 0 ? static_cast<T*>(run.workspace(gates_workspace))
                                : run.output(input_grad).data<T>();
    T* d_before = hidden_prev_grad < 0 ? static_cast<T*>(run.workspace(before_workspace))
                                       : run.output(hidden_prev_grad).data<T>();
    auto* d_reset = static_cast<T*>(run.workspace(reset_workspace));
    const auto gradient_of = [&](int64_t row) {
      return GruStepGradient<T>{.hidden = d_hidden + row * size,
                                .before = d_before + row * size,
                                .gates = d_gates + row * 3 * size};
    };
    ForEachRow(rows, size, [&](int64_t row) {
      std::fill_n(d_before + row * size, size, T{0});
      GruBackward(cell, before + row * size, gates + row * 3 * size, gradient_of(row));
    });
    weights.candidate.Multiply(run, d_gates + 2 * size, rows, 3 * size, false, d_reset, size);
    ForEachRow(rows, size, [&](int64_t row) {
      GruResetBackward(cell, before + row * size, gates + row * 3 * size, d_reset + row * size,
                       gradient_of(row));
    });
    if (hidden_prev_grad >= 0)
      weights.gates.Multiply(run, d_gates, rows, 3 * size, true, d_before, size);
    if (weight_grad >= 0) {
      weight_gradient.Run(run, rows, before, run.input(reset_hidden).data<T>(), d_gates,
                          run.output(weight_grad).data<T>());
    }
    if (bias_grad >= 0) {
      AxisReduction({rows, 3 * size}, {true, false}).Sum(d_gates, run.output(bias_grad).data<T>());
    }
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
  def.infer = InferGrad;
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
      {.name = "Gate", .doc = "[rows, 3H]: u, r and c.", .intermediate = true},
      {.name = "ResetHiddenPrev", .doc = "[rows, H]: HiddenPrev times r.", .intermediate = true},
      {.name = "Hidden", .doc = "[rows, H]."}};
  def.attrs = Attributes();
  def.infer = Infer;
  def.flop = Flop;
  AddGrad(registry, &def);
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>(
      "gru_unit", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
}

}  // namespace skiff
