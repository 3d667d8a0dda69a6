// CUDA kernels of gru_unit: a time step with all rows; gru_unit.cc has the formulas.
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/argument_data.h"
#include "operators/sequence/kernels/cuda_gru_cell.cuh"
#include "operators/sequence/kernels/cuda_steps.cuh"
#include "operators/sequence/kernels/numbered_activation.h"

namespace skiff {
namespace {

template <typename T>
GruCell<T> CellOf(const OpContext& context) {
  return {.size = context.Input("HiddenPrev").shape[1],
          .gate = NumberedActivation(context, "gate_activation"),
          .candidate = NumberedActivation(context, "activation"),
          .origin_mode = context.Attr<bool>("origin_mode")};
}

// The step with `rows` rows.
CudaStep StepOf(int64_t rows) {
  CudaStep step;
  step.count = rows;
  return step;
}

template <typename T>
std::unique_ptr<Kernel> PrepareGruUnit(PrepareContext& context) {
  const GruCell<T> cell = CellOf<T>(context);
  const int64_t most_rows = context.Input("HiddenPrev").shape[0];
  const auto weights = std::make_shared<CudaGruWeights<T>>(most_rows, cell.size, false);
  // A product computes as many rows as there can be, more than a run's tensors may have.
  const int before_workspace = RequestDeviceNumbers<T>(context, most_rows, cell.size);
  const int gates_workspace = RequestDeviceNumbers<T>(context, most_rows, 3 * cell.size);
  const int reset_workspace = RequestDeviceNumbers<T>(context, most_rows, cell.size);
  const int space = RequestProductSpace(context, *weights);
  return MakeRowsKernel(
      [=, input = context.InputIndex("Input"), hidden_prev = context.InputIndex("HiddenPrev"),
       weight = context.InputIndex("Weight"), bias = context.InputIndex("Bias"),
       gate = context.OutputIndex("Gate"), reset_hidden = context.OutputIndex("ResetHiddenPrev"),
       hidden = context.OutputIndex("Hidden")](const KernelContext& run) {
        const int64_t rows = run.input(hidden_prev).shape()[0];
        if (rows == 0) return;
        GruForwardStep<T> args;
        args.cell = cell;
        args.cell.bias = InputData<T>(run, bias);
        args.input = run.input(input).template data<T>();
        args.before = WithZeroRows(run, run.input(hidden_prev).template data<T>(), rows, most_rows,
                                   cell.size, before_workspace);
        args.gates = Numbers<T>(run, gates_workspace);
        args.reset = Numbers<T>(run, reset_workspace);
        args.hidden = run.output(hidden).template data<T>();
        args.batch_gates = run.output(gate).template data<T>();
        args.batch_reset = run.output(reset_hidden).template data<T>();
        weights->Forward(run, StepOf(rows), args, run.input(weight).template data<T>(),
                         /*adds=*/false, space);
      });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGruUnitGrad(PrepareContext& context) {
  const GruCell<T> cell = CellOf<T>(context);
  const int64_t size = cell.size;
  const int64_t most_rows = context.Input("HiddenPrev").shape[0];
  const int weight_grad = context.OutputIndex("Weight@GRAD");
  const int64_t weight_rows = weight_grad < 0 ? 0 : most_rows;
  const auto weights = std::make_shared<CudaGruWeights<T>>(most_rows, size, true);
  const CudaGruWeightGradient<T> weight_gradient(weight_rows, size);
  const int next_workspace = RequestDeviceNumbers<T>(context, most_rows, size);
  const int reset_grad_workspace = RequestDeviceNumbers<T>(context, most_rows, size);
  const int gates_workspace = RequestDeviceNumbers<T>(context, most_rows, 3 * size);
  const int before_workspace = RequestDeviceNumbers<T>(context, weight_rows, size);
  const int reset_workspace = RequestDeviceNumbers<T>(context, weight_rows, size);
  const int space = RequestProductSpace(context, *weights, weight_gradient);
  return MakeRowsKernel([=, hidden_prev = context.InputIndex("HiddenPrev"),
                         weight = context.InputIndex("Weight"), gate = context.InputIndex("Gate"),
                         reset_hidden = context.InputIndex("ResetHiddenPrev"),
                         hidden_grad = context.InputIndex("Hidden@GRAD"),
                         input_grad = context.OutputIndex("Input@GRAD"),
                         hidden_prev_grad = context.OutputIndex("HiddenPrev@GRAD"),
                         bias_grad = context.OutputIndex("Bias@GRAD")](const KernelContext& run) {
    const int64_t rows = run.input(hidden_prev).shape()[0];
    const T* before = run.input(hidden_prev).template data<T>();
    T* gates_grad = Numbers<T>(run, gates_workspace);
    if (rows > 0) {
      GruBackwardStep<T> args;
      args.cell = cell;
      args.h0 = before;
      args.batch_gates = run.input(gate).template data<T>();
      args.hidden_grad = run.input(hidden_grad).template data<T>();
      args.next = Numbers<T>(run, next_workspace);
      args.reset_grad = Numbers<T>(run, reset_grad_workspace);
      args.batch_gates_grad = gates_grad;
      args.input_grad = OutputData<T>(run, input_grad);
      weights->Backward(run, StepOf(rows), args, run.input(weight).template data<T>(),
                        Numbers<T>(run, reset_grad_workspace), hidden_prev_grad >= 0, space);
      if (hidden_prev_grad >= 0) {
        Tensor& to = run.output(hidden_prev_grad);
        CopyOnDevice(run, args.next, to.raw_data(), to.byte_count());
      }
    }
    if (weight_grad >= 0) {
      ClearRows(run, gates_grad, rows, most_rows, 3 * size);
      const T* reset = run.input(reset_hidden).template data<T>();
      weight_gradient.Run(run, WithZeroRows(run, before, rows, most_rows, size, before_workspace),
                          WithZeroRows(run, reset, rows, most_rows, size, reset_workspace),
                          gates_grad, run.output(weight_grad).template data<T>(), space);
    }
    if (bias_grad >= 0) {
      LaunchSumColumns(run, gates_grad, rows, 3 * size, 3 * size,
                       run.output(bias_grad).template data<T>());
    }
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
