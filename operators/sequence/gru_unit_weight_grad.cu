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
  const In<T> hidden_prev(context, "HiddenPrev");
  const In<T> reset_hidden(context, "ResetHiddenPrev");
  const In<T> input_grad(context, "Input@GRAD");
  const Out<T> weight_grad(context, "Weight@GRAD");
  const Out<T> bias_grad(context, "Bias@GRAD");
  const int64_t weight_rows = weight_grad.is_there() ? most_rows : 0;
  const CudaGruWeightGradient<T> weight_gradient(weight_rows, size);
  // For copies of runs with fewer rows.
  const int64_t copied = context.rows_vary() ? weight_rows : 0;
  const Workspace<T> before_copy(context, copied, size);
  const Workspace<T> reset_copy(context, copied, size);
  const Workspace<T> gates_copy(context, copied, 3 * size);
  const int space = RequestProductSpace(context, weight_gradient);
  const auto run_kernel = [=](const KernelContext& run) {
    const int64_t rows = hidden_prev.shape(run)[0];
    const T* gates = input_grad(run);
    if (bias_grad.is_there())
      LaunchSumColumns(run, gates, rows, 3 * size, 3 * size, bias_grad(run));
    if (!weight_grad.is_there()) return;
    weight_gradient.Run(
        run, WithZeroRows(run, hidden_prev(run), rows, most_rows, size, before_copy),
        WithZeroRows(run, reset_hidden(run), rows, most_rows, size, reset_copy),
        WithZeroRows(run, gates, rows, most_rows, 3 * size, gates_copy), weight_grad(run), space);
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
