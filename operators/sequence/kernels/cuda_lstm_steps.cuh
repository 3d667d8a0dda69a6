// The time steps of a layer of LSTM cells on a device, forward and backward, with or without a
// projection: of lstm, lstmp and attention_decoder, whose slots have the same names.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "operators/sequence/kernels/cuda_lstm_cell.cuh"
#include "operators/sequence/kernels/cuda_recurrent_layer.cuh"
#include "operators/sequence/kernels/lstm_layer.h"

namespace skiff {

// Activates the projections of a step's sequences, and copies them to the rows of all steps.
template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    ActivateProjections(CudaStep step, ClippedActivation<T> activation, int64_t width,
                        int threads_of_row, T* states, T* projection) {
  ForEachColumn(
      step.count, width, threads_of_row, [&](int64_t j) { return StepRow(step, j); },
      [&](int64_t j, int64_t i, const StepRow& of) {
        const T y = Activated(activation, states[j * width + i]);
        states[j * width + i] = y;
        projection[of.row * width + i] = y;
      });
}

// Sets the gradients of h · ProjWeight and the projections before, which lie in batch order. The
// next gradients are for the states.
template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    ProjectionBackwardRows(CudaStep step, ClippedActivation<T> activation, CudaCellGradient<T> args,
                           int64_t width, int threads_of_row, T* batch_gradient) {
  ForEachColumn(
      step.count, width, threads_of_row, [&](int64_t j) { return StepRow(step, j); },
      [&](int64_t j, int64_t i, const StepRow& of) {
        const int64_t at = of.row * width + i;
        const int64_t batch_at = (step.first + j) * width + i;
        const T d = args.hidden_grad[at] +
                    (j < step.later || args.has_all_next ? args.next[j * width + i] : T{0});
        batch_gradient[batch_at] = ThroughActivation(activation, args.hidden[at], d);
        if (args.batch_before != nullptr)
          args.batch_before[batch_at] = of.Before<T>(args.hidden, args.h0, width, i);
      });
}

template <typename T>
class CudaLstmForwardSteps {
 public:
  using Layer = LstmLayer<T>;

  CudaLstmForwardSteps(PrepareContext& context, const Layer& layer)
      : layer_(layer),
        product_(layer.capacity.sequences,
                 StepShape(layer.state_width(), layer.gates_width(), /*is_gradient=*/false)),
        weight_(context, "Weight"),
        bias_(context, "Bias"),
        c0_(context, "C0"),
        batch_gate_(context, "BatchGate"),
        batch_activated_(context, "BatchCellPreAct"),
        batch_hidden_(OutputIfAny<T>(context, "BatchHidden")),
        ordered_(OutputIfAny<T>(context, "OrderedP0")),
        cells_(context, Out<T>(context, "Cell"), layer.capacity.rows, layer.cell.size),
        gates_(context, layer.capacity.sequences, layer.gates_width()) {
    if (layer.projection) projection_.emplace(context, layer);
  }

  int64_t workspace_bytes() const {
    return std::max(product_.workspace_bytes(),
                    projection_ ? projection_->product.workspace_bytes() : 0);
  }
  T* Gates(const KernelContext& run) const { return gates_(run); }

  void Begin(const KernelContext& run, const CudaCellRun<T>& of) {
    run_ = of;
    args_ = {};
    args_.cell = layer_.CellWith(bias_(run));
    args_.forget_bias = layer_.forget_bias;
    args_.input = of.input;
    args_.c0 = c0_(run);
    args_.states = projection_ ? projection_->hidden(run) : of.states;
    args_.hidden = projection_ ? nullptr : of.hidden;
    args_.cells = cells_(run);
    args_.batch_gates = batch_gate_(run);
    args_.batch_activated = batch_activated_(run);
    args_.batch_hidden = batch_hidden_(run);
    if (ordered_.is_there())
      FillBytesOnDevice(run, ordered_(run), 0, ordered_.tensor(run).byte_count());
  }

  void Run(const KernelContext& run, const CudaStep& step, StateProduct product, int space) {
    args_.product = nullptr;
    if (product != StateProduct::kNone && layer_.state_width() > 0) {
      product_.Run(run, step.count, run_.states, weight_(run), product == StateProduct::kAdd,
                   gates_(run), space);
      args_.product = gates_(run);
    }
    LaunchLstmForward(run, step, args_);
    if (layer_.projection && layer_.projection->width > 0) Project(run, step, space);
  }

 private:
  struct Projection {
    Projection(PrepareContext& context, const Layer& layer)
        : product(layer.capacity.sequences,
                  StepShape(layer.cell.size, layer.state_width(), /*is_gradient=*/false)),
          weight(context, "ProjWeight"),
          hidden(context, layer.capacity.sequences, layer.cell.size) {}

    CudaStepProduct<T> product;
    In<T> weight;
    Workspace<T> hidden;  // of a step
  };

  void Project(const KernelContext& run, const CudaStep& step, int space) const {
    const int64_t width = layer_.projection->width;
    if (layer_.cell.size == 0) ClearRows(run, run_.states, 0, step.count, width);
    projection_->product.Run(run, step.count, args_.states, projection_->weight(run), false,
                             run_.states, space);
    const RowThreads threads(step.count, width);
    ActivateProjections<T><<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(
        step, layer_.projection->activation, width, threads.of_row, run_.states, run_.hidden);
    CheckLaunch("projection of an LSTM");
  }

  Layer layer_;
  CudaStepProduct<T> product_;
  std::optional<Projection> projection_;
  In<T> weight_;
  In<T> bias_;
  In<T> c0_;
  Out<T> batch_gate_;
  Out<T> batch_activated_;
  Out<T> batch_hidden_;
  Out<T> ordered_;
  OutputOrWorkspace<T> cells_;
  Workspace<T> gates_;
  CudaCellRun<T> run_ = {};
  LstmForwardStep<T> args_;
};

template <typename T>
class CudaLstmBackwardSteps {
 public:
  using Layer = LstmLayer<T>;

  CudaLstmBackwardSteps(PrepareContext& context, const Layer& layer)
      : layer_(layer),
        weight_rows_(context.HasOutput("Weight@GRAD") ? layer.capacity.rows : 0),
        has_peephole_sums_(layer.has_peepholes && context.HasOutput("Bias@GRAD")),
        product_(layer.capacity.sequences,
                 StepShape(layer.state_width(), layer.gates_width(), /*is_gradient=*/true)),
        weight_product_(weight_rows_, layer.state_width(), layer.state_width(), layer.gates_width(),
                        layer.gates_width()),
        weight_(context, "Weight"),
        bias_(context, "Bias"),
        c0_(context, "C0"),
        cells_(context, "Cell"),
        batch_activated_(context, "BatchCellPreAct"),
        cell_grad_(context, "Cell@GRAD"),
        c0_grad_(context, "C0@GRAD"),
        next_cell_(context, layer.capacity.sequences, layer.cell.size),
        peephole_sums_(context, has_peephole_sums_ ? layer.capacity.sequences : 0,
                       3 * layer.cell.size) {
    if (layer.projection) projection_.emplace(context, layer);
  }

  int64_t workspace_bytes() const {
    return std::max({product_.workspace_bytes(), weight_product_.workspace_bytes(),
                     projection_ ? projection_->workspace_bytes() : 0});
  }
  bool AcceptsFewerRows() const { return !projection_ || projection_->rows_vary; }

  void Begin(const KernelContext& run, const CudaCellGradient<T>& of) {
    gradient_ = of;
    args_ = {};
    args_.cell = layer_.CellWith(bias_(run));
    args_.cells = cells_(run);
    args_.c0 = c0_(run);
    args_.batch_gates = of.batch_gates;
    args_.batch_activated = batch_activated_(run);
    args_.cell_grad = cell_grad_(run);
    args_.next_hidden = of.next;
    args_.has_all_next = of.has_all_next;
    args_.next_cell = next_cell_(run);
    args_.batch_gates_grad = of.batch_gates_grad;
    args_.input_grad = of.input_grad;
    args_.peephole_sums = has_peephole_sums_ ? peephole_sums_(run) : nullptr;
    if (projection_) {
      // All that there is for the hidden states comes from the projections.
      args_.next_hidden = projection_->step_hidden(run);
      args_.has_all_next = true;
    } else {
      args_.hidden = of.hidden;
      args_.h0 = of.h0;
      args_.hidden_grad = of.hidden_grad;
      args_.batch_before = of.batch_before;
    }
  }

  void Run(const KernelContext& run, const CudaStep& step, bool wants_before, int space) const {
    if (projection_) ProjectBack(run, step, space);
    LaunchLstmBackward(run, step, args_);
    if (!wants_before) return;
    const int64_t width = layer_.state_width();
    if (layer_.cell.size == 0) ClearRows(run, gradient_.next, 0, step.count, width);
    product_.Run(run, step.count, gradient_.batch_gates_grad + step.first * layer_.gates_width(),
                 weight_(run), false, gradient_.next, space);
  }

  void End(const KernelContext& run, const CudaTimeSteps& time, int64_t used) const {
    if (c0_grad_.is_there())
      LaunchStoreStates(run, time, args_.next_cell, used, layer_.cell.size, c0_grad_(run));
  }

  void SumWeight(const KernelContext& run, const T* before, const T* gates, int64_t, T* weight_grad,
                 int space) const {
    weight_product_.Run(run, before, gates, weight_grad, space);
  }
  void SumOthers(const KernelContext& run, int64_t rows, int space) const {
    if (projection_) projection_->SumWeight(run, rows, space);
  }
  void SumPeepholes(const KernelContext& run, int64_t used, T* bias_grad) const {
    if (args_.peephole_sums == nullptr) return;
    const int64_t size = layer_.cell.size;
    LaunchSumColumns(run, args_.peephole_sums, used, 3 * size, 3 * size, bias_grad + 4 * size);
  }

 private:
  struct Projection {
    Projection(PrepareContext& context, const Layer& layer)
        : size(layer.cell.size),
          width(layer.state_width()),
          most_rows(layer.capacity.rows),
          rows_vary(context.rows_vary()),
          weight(context, "ProjWeight"),
          batch_hidden(context, "BatchHidden"),
          weight_grad(context, "ProjWeight@GRAD"),
          weight_rows(weight_grad.is_there() ? most_rows : 0),
          product(layer.capacity.sequences, StepShape(size, width, /*is_gradient=*/true)),
          weight_product(weight_rows, size, size, width, width),
          step_hidden(context, layer.capacity.sequences, size),
          // The products of the last steps may read after their rows.
          batch_grad(context, most_rows + layer.capacity.sequences, width),
          hidden_rows(context, rows_vary ? weight_rows : 0, size) {}

    int64_t workspace_bytes() const {
      return std::max(product.workspace_bytes(), weight_product.workspace_bytes());
    }

    void SumWeight(const KernelContext& run, int64_t rows, int space) const {
      if (!weight_grad.is_there()) return;
      ClearRows(run, batch_grad(run), rows, most_rows, width);
      const T* hidden = WithZeroRows(run, batch_hidden(run), rows, most_rows, size, hidden_rows);
      weight_product.Run(run, hidden, batch_grad(run), weight_grad(run), space);
    }

    int64_t size;
    int64_t width;
    int64_t most_rows;
    bool rows_vary;
    In<T> weight;
    In<T> batch_hidden;
    Out<T> weight_grad;
    int64_t weight_rows;  // in the sum of its gradient, if wanted
    CudaStepProduct<T> product;
    CudaSumProduct<T> weight_product;
    Workspace<T> step_hidden;  // the gradient of the hidden states of a step
    Workspace<T> batch_grad;   // of h · ProjWeight, of all rows in batch order
    Workspace<T> hidden_rows;
  };

  // Sets the gradient of the hidden states of a step.
  void ProjectBack(const KernelContext& run, const CudaStep& step, int space) const {
    const int64_t width = projection_->width;
    T* hidden = projection_->step_hidden(run);
    if (width == 0) return ClearRows(run, hidden, 0, step.count, layer_.cell.size);
    T* batch_grad = projection_->batch_grad(run);
    const RowThreads threads(step.count, width);
    ProjectionBackwardRows<T><<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(
        step, layer_.projection->activation, gradient_, width, threads.of_row, batch_grad);
    CheckLaunch("gradient of a projection of an LSTM");
    projection_->product.Run(run, step.count, batch_grad + step.first * width,
                             projection_->weight(run), false, hidden, space);
  }

  Layer layer_;
  int64_t weight_rows_;  // that the gradient of Weight is summed over, if it is wanted
  bool has_peephole_sums_;
  CudaStepProduct<T> product_;
  CudaSumProduct<T> weight_product_;
  std::optional<Projection> projection_;
  In<T> weight_;
  In<T> bias_;
  In<T> c0_;
  In<T> cells_;
  In<T> batch_activated_;
  In<T> cell_grad_;
  Out<T> c0_grad_;
  Workspace<T> next_cell_;
  Workspace<T> peephole_sums_;
  CudaCellGradient<T> gradient_ = {};
  LstmBackwardStep<T> args_;
};

}  // namespace skiff
