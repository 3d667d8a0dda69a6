// CUDA kernels of lstm_unit; lstm_unit.cc has the formulas.
#include <memory>

#include "framework/op/arguments.h"
#include "framework/op/registry.h"
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
  const int64_t size = context.Input("C_prev").shape[1];
  const auto forget_bias = static_cast<T>(context.Attr<float>("forget_bias"));
  const In<T> x(context, "X");
  const In<T> before(context, "C_prev");
  const Out<T> cell(context, "C");
  const Out<T> hidden(context, "H");
  return MakeRowsKernel([=](const KernelContext& run) {
    const int64_t rows = before.shape(run)[0];
    if (rows == 0) return;
    const RowThreads threads(rows, size);
    UnitForward<T><<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(
        x(run), before(run), forget_bias, rows, size, threads.of_row, cell(run), hidden(run));
    CheckLaunch("lstm_unit");
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareLstmUnitGrad(PrepareContext& context) {
  const int64_t size = context.Input("C_prev").shape[1];
  const auto forget_bias = static_cast<T>(context.Attr<float>("forget_bias"));
  const In<T> x(context, "X");
  const In<T> before(context, "C_prev");
  const In<T> cell(context, "C");
  const In<T> cell_grad(context, "C@GRAD");
  const In<T> hidden_grad(context, "H@GRAD");
  const Out<T> x_grad(context, "X@GRAD");
  const Out<T> before_grad(context, "C_prev@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    const int64_t rows = before.shape(run)[0];
    if (rows == 0) return;
    const RowThreads threads(rows, size);
    UnitBackward<T><<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(
        x(run), before(run), cell(run), cell_grad(run), hidden_grad(run), forget_bias, rows, size,
        threads.of_row, x_grad(run), before_grad(run));
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
