// CUDA kernels of gru_unit: a time step with all rows; gru_unit.cc has the formulas.
#include <memory>

#include "framework/op/registry.h"
#include "operators/sequence/kernels/cuda_gru_cell.cuh"
#include "operators/sequence/kernels/cuda_steps.cuh"
#include "operators/sequence/kernels/gru_unit_cell.h"
#include "operators/sequence/kernels/workspace.h"

namespace skiff {
namespace {

// The step with `rows` rows.
CudaStep StepOf(int64_t rows) {
  CudaStep step;
  step.count = rows;
  return step;
}

template <typename T>
std::unique_ptr<Kernel> PrepareGruUnit(PrepareContext& context) {
  const GruCell<T> cell = UnitCell<T>(context);
  const int64_t most_rows = context.Input("HiddenPrev").shape[0];
  const auto weights = std::make_shared<CudaGruWeights<T>>(most_rows, cell.size, false);
  const In<T> input(context, "Input");
  const In<T> hidden_prev(context, "HiddenPrev");
  const In<T> weight(context, "Weight");
  const In<T> bias(context, "Bias");
  const Out<T> gate(context, "Gate");
  const Out<T> reset_hidden(context, "ResetHiddenPrev");
  const Out<T> hidden(context, "Hidden");
  // A product computes as many rows as there can be, more than a run's tensors may have.
  const Workspace<T> before(context, most_rows, cell.size);
  const Workspace<T> gates(context, most_rows, 3 * cell.size);
  const Workspace<T> reset(context, most_rows, cell.size);
  const int space = RequestProductSpace(context, *weights);
  return MakeRowsKernel([=](const KernelContext& run) {
    const int64_t rows = hidden_prev.shape(run)[0];
    if (rows == 0) return;
    GruForwardStep<T> args;
    args.cell = cell;
    args.cell.bias = bias(run);
    args.input = input(run);
    args.before = WithZeroRows(run, hidden_prev(run), rows, most_rows, cell.size, before);
    args.gates = gates(run);
    args.reset = reset(run);
    args.hidden = hidden(run);
    args.batch_gates = gate(run);
    args.batch_reset = reset_hidden(run);
    weights->Forward(run, StepOf(rows), args, weight(run), /*adds=*/false, space);
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGruUnitGrad(PrepareContext& context) {
  const GruCell<T> cell = UnitCell<T>(context);
  const int64_t size = cell.size;
  const int64_t most_rows = context.Input("HiddenPrev").shape[0];
  const In<T> hidden_prev(context, "HiddenPrev");
  const In<T> weight(context, "Weight");
  const In<T> gate(context, "Gate");
  const In<T> reset_hidden(context, "ResetHiddenPrev");
  const In<T> hidden_grad(context, "Hidden@GRAD");
  const Out<T> input_grad(context, "Input@GRAD");
  const Out<T> hidden_prev_grad(context, "HiddenPrev@GRAD");
  const Out<T> weight_grad(context, "Weight@GRAD");
  const Out<T> bias_grad(context, "Bias@GRAD");
  const int64_t weight_rows = weight_grad.is_there() ? most_rows : 0;
  const auto weights = std::make_shared<CudaGruWeights<T>>(most_rows, size, true);
  const CudaGruWeightGradient<T> weight_gradient(weight_rows, size);
  const Workspace<T> next(context, most_rows, size);
  const Workspace<T> reset_grad(context, most_rows, size);
  const Workspace<T> gates_grad(context, most_rows, 3 * size);
  const Workspace<T> before_rows(context, weight_rows, size);
  const Workspace<T> reset_rows(context, weight_rows, size);
  const int space = RequestProductSpace(context, *weights, weight_gradient);
  return MakeRowsKernel([=](const KernelContext& run) {
    const int64_t rows = hidden_prev.shape(run)[0];
    const T* before = hidden_prev(run);
    if (rows > 0) {
      GruBackwardStep<T> args;
      args.cell = cell;
      args.h0 = before;
      args.batch_gates = gate(run);
      args.hidden_grad = hidden_grad(run);
      args.next = next(run);
      args.reset_grad = reset_grad(run);
      args.batch_gates_grad = gates_grad(run);
      args.input_grad = input_grad(run);
      weights->Backward(run, StepOf(rows), args, weight(run), reset_grad(run),
                        hidden_prev_grad.is_there(), space);
      if (hidden_prev_grad.is_there()) {
        CopyOnDevice(run, args.next, hidden_prev_grad(run),
                     hidden_prev_grad.tensor(run).byte_count());
      }
    }
    if (weight_grad.is_there()) {
      ClearRows(run, gates_grad(run), rows, most_rows, 3 * size);
      weight_gradient.Run(run, WithZeroRows(run, before, rows, most_rows, size, before_rows),
                          WithZeroRows(run, reset_hidden(run), rows, most_rows, size, reset_rows),
                          gates_grad(run), weight_grad(run), space);
    }
    if (bias_grad.is_there())
      LaunchSumColumns(run, gates_grad(run), rows, 3 * size, 3 * size, bias_grad(run));
  });
}

template <typename T>
void AddGruUnitKernels(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "gru_unit", PrepareGruUnit<T>);
  AddCudaKernel<T>(registry, "gru_unit_grad", PrepareGruUnitGrad<T>);
}

}  // namespace

void RegisterGruUnitCuda(OpRegistry& registry) {
  AddGruUnitKernels<float>(registry);
  AddGruUnitKernels<double>(registry);
}

}  // namespace skiff
