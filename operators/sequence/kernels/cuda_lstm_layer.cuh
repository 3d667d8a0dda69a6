// What the CUDA kernels of layers of LSTM cells, lstm and lstmp, have in common.
#pragma once

#include <cstdint>

#include "framework/op/kernel.h"
#include "operators/sequence/kernels/cuda_lstm_cell.cuh"
#include "operators/sequence/kernels/cuda_steps.cuh"
#include "operators/sequence/kernels/lstm_layer.h"

namespace skiff {

template <typename T>
class CudaLstmLayer : public Kernel {
 protected:
  // `size`: of the cells.
  CudaLstmLayer(PrepareContext& context, int64_t size)
      : size_(size),
        most_rows_(context.Input("Input").shape[0]),
        most_sequences_(SequenceCount(context, "Input")),
        has_peepholes_(HasPeepholes(context)),
        steps_(context, most_sequences_, context.Attr<bool>("is_reverse")),
        cell_(LstmCellOf<T>(context, size_)),
        input_(context.InputIndex("Input")),
        weight_(context.InputIndex("Weight")),
        bias_(context.InputIndex("Bias")),
        h0_(context.InputIndex("H0")),
        c0_(context.InputIndex("C0")) {}

  LstmCell<T> Cell(const KernelContext& run) const {
    return WithBias(cell_, run.input(bias_).data<T>(), has_peepholes_);
  }

  // Stores the states [used, width] of the sequences that have rows to an output [sequences,
  // width], with zeros for the others.
  void StoreStart(const KernelContext& run, const T* states, int64_t used, int64_t width,
                  int output) const {
    LaunchStoreStates(run, steps_.on_device(), states, used, steps_.count(), width,
                      run.output(output).template data<T>());
  }

  // Sums the gradients of the gates [rows, 4 size], and those of the peepholes [used, 3 size]
  // unless that is nullptr, to the gradient of Bias.
  void SumBiasGradient(const KernelContext& run, const T* gates, int64_t rows,
                       const T* peephole_sums, int64_t used, int output) const {
    T* gradient = run.output(output).template data<T>();
    LaunchSumColumns(run, gates, rows, 4 * size_, 4 * size_, gradient);
    if (peephole_sums == nullptr) return;
    LaunchSumColumns(run, peephole_sums, used, 3 * size_, 3 * size_, gradient + 4 * size_);
  }

  int64_t size_;  // H
  int64_t most_rows_;
  int64_t most_sequences_;
  bool has_peepholes_;
  CudaTimeSteps steps_;
  LstmCell<T> cell_;
  int input_;
  int weight_;
  int bias_;
  int h0_;
  int c0_;
};

}  // namespace skiff
