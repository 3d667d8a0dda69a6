// gru_unit_weight_grad: the gradients of Weight and Bias of gru_unit from those of Input.
//
// With G the gradient of Input, [rows, 3H], whose columns belong to u, r and c:
//
//   dWeight  HiddenPrev' · G[:, u and r], and after it ResetHiddenPrev' · G[:, c]
//   dBias    the sum of the rows of G
//
// The pass batch_over_time makes it: these sums over rows can wait until the rows of many time
// steps are there.
#include <string>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/cpu/reduce.h"
#include "operators/common/input_checks.h"
#include "operators/sequence/kernels/gru_unit_cell.h"
#include "operators/sequence/kernels/gru_weights.h"
#include "operators/sequence/kernels/recurrent_arguments.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  const int64_t gates = UnitGatesWidth(context);
  const TensorMeta& before = context.Input("HiddenPrev");
  CheckInputLike(context, "ResetHiddenPrev", before.shape, before.dtype);
  CheckInputLike(context, "Input@GRAD", {before.shape[0], gates}, before.dtype);
  CheckInputLike(context, "Weight", {before.shape[1], gates}, before.dtype);
  context.SetOutputLike("Weight@GRAD", "Weight");
  context.SetOutput("Bias@GRAD", {1, gates}, before.dtype);
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const Shape& before = context.Input("HiddenPrev").shape;
  const int64_t size = before[1];
  const In<T> hidden_prev(context, "HiddenPrev");
  const In<T> reset_hidden(context, "ResetHiddenPrev");
  const In<T> input_grad(context, "Input@GRAD");
  const Out<T> weight_grad(context, "Weight@GRAD");
  const Out<T> bias_grad(context, "Bias@GRAD");
  GruWeightGradient<T> weight_gradient(context, size, weight_grad.is_there() ? before[0] : 0);
  return MakeRowsKernel([=,
                         weight_gradient = std::move(weight_gradient)](const KernelContext& run) {
    const int64_t rows = hidden_prev.shape(run)[0];
    const T* gates = input_grad(run);
    if (weight_grad.is_there()) {
      weight_gradient.Run(run, rows, hidden_prev(run), reset_hidden(run), gates, weight_grad(run));
    }
    if (bias_grad.is_there())
      AxisReduction({rows, 3 * size}, {true, false}).Sum(gates, bias_grad(run));
  });
}

double Flop(const OpContext& context) { return ProductFlop(context, "HiddenPrev", {"Weight"}); }

}  // namespace

void RegisterGruUnitWeightGrad(OpRegistry& registry) {
  OpDef def;
  def.type = "gru_unit_weight_grad";
  def.doc = "The gradients of Weight and Bias of gru_unit, from what the other gradients leave.";
  def.inputs = {{.name = "HiddenPrev", .doc = "[rows, H], of gru_unit."},
                {.name = "ResetHiddenPrev", .doc = "[rows, H], of gru_unit."},
                {.name = "Input@GRAD", .doc = "[rows, 3H]: the gradient of Input."},
                {.name = "Weight", .doc = "[H, 3H], of gru_unit.", .shape_only = true}};
  def.outputs = {{.name = "Weight@GRAD", .doc = "Like Weight.", .dispensable = true},
                 {.name = "Bias@GRAD", .doc = "[1, 3H].", .dispensable = true}};
  def.infer = Infer;
  def.precision = Precision::kLow;
  def.no_gradient_reason = "it is part of the backward pass only";
  def.flop = Flop;
  def.rows = RowRule{.inputs = {"HiddenPrev", "ResetHiddenPrev", "Input@GRAD"},
                     .sums = {"Weight@GRAD", "Bias@GRAD"}};
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>(
      "gru_unit_weight_grad",
      []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
}

}  // namespace skiff
