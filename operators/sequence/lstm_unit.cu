// CUDA kernels of lstm_unit; lstm_unit.cc has the formulas.
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/argument_data.h"
#include "operators/sequence/kernels/cuda_activation.cuh"
#include "operators/sequence/kernels/cuda_sequences.cuh"

namespace skiff {
namespace {

// One number of each gate, computed again for the gradient.
template <typename T>
struct UnitGates {
  T input;
  T forget;
  T output;
  T candidate;

  __device__ UnitGates(const T* x, int64_t size, int64_t i, T forget_bias)
      : input(SigmoidOf(x[i])),
        forget(SigmoidOf(x[size + i] + forget_bias)),
        output(SigmoidOf(x[2 * size + i])),
        candidate(std::tanh(x[3 * size + i])) {}
};

template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    UnitForward(const T* x, const T* before, T forget_bias, int64_t rows, int64_t size,
                int threads_of_row, T* cell, T* hidden) {
  ForEachColumn(
      rows, size, threads_of_row, [](int64_t row) { return row; },
      [&](int64_t row, int64_t i, int64_t) {
        const UnitGates<T> gates(x + row * 4 * size, size, i, forget_bias);
        const T c = gates.forget * before[row * size + i] + gates.input * gates.candidate;
        cell[row * size + i] = c;
        hidden[row * size + i] = gates.output * std::tanh(c);
      });
}

// d_x and d_before may be nullptr.
template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    UnitBackward(const T* x, const T* before, const T* cell, const T* d_cell, const T* d_hidden,
                 T forget_bias, int64_t rows, int64_t size, int threads_of_row, T* d_x,
                 T* d_before) {
  ForEachColumn(
      rows, size, threads_of_row, [](int64_t row) { return row; },
      [&](int64_t row, int64_t i, int64_t) {
        const int64_t at = row * size + i;
        const UnitGates<T> gates(x + row * 4 * size, size, i, forget_bias);
        const T squashed = std::tanh(cell[at]);
        const T d = d_cell[at] + d_hidden[at] * gates.output * (1 - squashed * squashed);
        if (d_before != nullptr) d_before[at] = d * gates.forget;
        if (d_x == nullptr) return;
        using enum RecurrentActivation;
        T* to = d_x + row * 4 * size + i;
        to[0] = ThroughActivation(kSigmoid, gates.input, d * gates.candidate);
        to[size] = ThroughActivation(kSigmoid, gates.forget, d * before[at]);
        to[2 * size] = ThroughActivation(kSigmoid, gates.output, d_hidden[at] * squashed);
        to[3 * size] = ThroughActivation(kTanh, gates.candidate, d * gates.input);
      });
}

template <typename T>
std::unique_ptr<Kernel> PrepareLstmUnit(PrepareContext& context) {
  return MakeRowsKernel([size = context.Input("C_prev").shape[1],
                         forget_bias = static_cast<T>(context.Attr<float>("forget_bias")),
                         x = context.InputIndex("X"), before = context.InputIndex("C_prev"),
                         cell = context.OutputIndex("C"),
                         hidden = context.OutputIndex("H")](const KernelContext& run) {
    const int64_t rows = run.input(before).shape()[0];
    if (rows == 0) return;
    const RowThreads threads(rows, size);
    UnitForward<T><<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(
        run.input(x).data<T>(), run.input(before).data<T>(), forget_bias, rows, size,
        threads.of_row, run.output(cell).data<T>(), run.output(hidden).data<T>());
    CheckLaunch("lstm_unit");
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareLstmUnitGrad(PrepareContext& context) {
  return MakeRowsKernel(
      [size = context.Input("C_prev").shape[1],
       forget_bias = static_cast<T>(context.Attr<float>("forget_bias")),
       x = context.InputIndex("X"), before = context.InputIndex("C_prev"),
       cell = context.InputIndex("C"), cell_grad = context.InputIndex("C@GRAD"),
       hidden_grad = context.InputIndex("H@GRAD"), x_grad = context.OutputIndex("X@GRAD"),
       before_grad = context.OutputIndex("C_prev@GRAD")](const KernelContext& run) {
        const int64_t rows = run.input(before).shape()[0];
        if (rows == 0) return;
        const RowThreads threads(rows, size);
        UnitBackward<T><<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(
            run.input(x).data<T>(), run.input(before).data<T>(), run.input(cell).data<T>(),
            run.input(cell_grad).data<T>(), run.input(hidden_grad).data<T>(), forget_bias, rows,
            size, threads.of_row, OutputData<T>(run, x_grad), OutputData<T>(run, before_grad));
        CheckLaunch("lstm_unit_grad");
      });
}

template <typename T>
void AddLstmUnitKernels(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "lstm_unit", PrepareLstmUnit<T>);
  AddCudaKernel<T>(registry, "lstm_unit_grad", PrepareLstmUnitGrad<T>);
}

}  // namespace

void RegisterLstmUnitCuda(OpRegistry& registry) {
  AddLstmUnitKernels<float>(registry);
  AddLstmUnitKernels<double>(registry);
}

}  // namespace skiff
