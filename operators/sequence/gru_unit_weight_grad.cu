// CUDA kernel of gru_unit_weight_grad.
#include <memory>

#include "framework/op/registry.h"
#include "operators/sequence/kernels/cuda_gru_cell.cuh"
#include "operators/sequence/kernels/cuda_steps.cuh"

namespace skiff {
namespace {

template <typename T>
std::unique_ptr<Kernel> PrepareGruUnitWeightGrad(PrepareContext& context) {
  const int64_t most_rows = context.Input("HiddenPrev").shape[0];
  const int64_t size = context.Input("HiddenPrev").shape[1];
  const int weight_grad = context.OutputIndex("Weight@GRAD");
  const int64_t weight_rows = weight_grad < 0 ? 0 : most_rows;
  const CudaGruWeightGradient<T> weight_gradient(weight_rows, size);
  // For copies of runs with fewer rows.
  const int64_t copied = context.rows_vary() ? weight_rows : 0;
  const int before_copy = RequestDeviceNumbers<T>(context, copied, size);
  const int reset_copy = RequestDeviceNumbers<T>(context, copied, size);
  const int gates_copy = RequestDeviceNumbers<T>(context, copied, 3 * size);
  const int space = RequestProductSpace(context, weight_gradient);
  const auto run_kernel = [=, hidden_prev = context.InputIndex("HiddenPrev"),
                           reset_hidden = context.InputIndex("ResetHiddenPrev"),
                           input_grad = context.InputIndex("Input@GRAD"),
                           bias_grad = context.OutputIndex("Bias@GRAD")](const KernelContext& run) {
    const int64_t rows = run.input(hidden_prev).shape()[0];
    const T* gates = run.input(input_grad).data<T>();
    if (bias_grad >= 0)
      LaunchSumColumns(run, gates, rows, 3 * size, 3 * size, run.output(bias_grad).data<T>());
    if (weight_grad < 0) return;
    const T* before = run.input(hidden_prev).data<T>();
    const T* reset = run.input(reset_hidden).data<T>();
    weight_gradient.Run(run, WithZeroRows(run, before, rows, most_rows, size, before_copy),
                        WithZeroRows(run, reset, rows, most_rows, size, reset_copy),
                        WithZeroRows(run, gates, rows, most_rows, 3 * size, gates_copy),
                        run.output(weight_grad).data<T>(), space);
  };
  if (context.rows_vary()) return MakeRowsKernel(run_kernel);
  return MakeKernel(run_kernel);
}

template <typename T>
void AddGruUnitWeightGradKernels(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "gru_unit_weight_grad", PrepareGruUnitWeightGrad<T>);
}

}  // namespace

void RegisterGruUnitWeightGradCuda(OpRegistry& registry) {
  AddGruUnitWeightGradKernels<float>(registry);
  AddGruUnitWeightGradKernels<double>(registry);
}

}  // namespace skiff
