// The time steps of a layer of gated recurrent units on a device, forward and backward: of gru and
// attention_decoder, whose slots have the same names.
#pragma once

#include <algorithm>
#include <cstdint>

#include "operators/sequence/kernels/cuda_gru_cell.cuh"
#include "operators/sequence/kernels/cuda_recurrent_layer.cuh"
#include "operators/sequence/kernels/gru_layer.h"

namespace skiff {

template <typename T>
class CudaGruForwardSteps {
 public:
  using Layer = GruLayer<T>;

  CudaGruForwardSteps(PrepareContext& context, const Layer& layer)
      : layer_(layer),
        weights_(layer.capacity.sequences, layer.cell.size, /*is_transposed=*/false),
        weight_(context, "Weight"),
        bias_(context, "Bias"),
        batch_gate_(context, "BatchGate"),
        batch_reset_(OutputIfAny<T>(context, "BatchResetHiddenPrev")),
        batch_hidden_(OutputIfAny<T>(context, "BatchHidden")),
        gates_(context, layer.capacity.sequences, layer.gates_width()),
        reset_(context, layer.capacity.sequences, layer.cell.size) {}

  int64_t workspace_bytes() const { return weights_.workspace_bytes(); }
  T* Gates(const KernelContext& run) const { return gates_(run); }

  void Begin(const KernelContext& run, const CudaCellRun<T>& of) {
    args_ = {};
    args_.cell = layer_.CellWith(bias_(run));
    args_.input = of.input;
    args_.states = of.states;
    args_.gates = gates_(run);
    args_.reset = reset_(run);
    args_.hidden = of.hidden;
    args_.batch_gates = batch_gate_(run);
    args_.batch_reset = batch_reset_(run);
    args_.batch_hidden = batch_hidden_(run);
  }

  void Run(const KernelContext& run, const CudaStep& step, StateProduct product, int space) {
    args_.has_product = product != StateProduct::kNone;
    args_.before = args_.has_product ? args_.states : nullptr;
    weights_.Forward(run, step, args_, weight_(run), product == StateProduct::kAdd, space);
  }

 private:
  Layer layer_;
  CudaGruWeights<T> weights_;
  In<T> weight_;
  In<T> bias_;
  Out<T> batch_gate_;
  Out<T> batch_reset_;
  Out<T> batch_hidden_;
  Workspace<T> gates_;
  Workspace<T> reset_;
  GruForwardStep<T> args_;
};

template <typename T>
class CudaGruBackwardSteps {
 public:
  using Layer = GruLayer<T>;

  CudaGruBackwardSteps(PrepareContext& context, const Layer& layer)
      : layer_(layer),
        wants_weight_(context.HasOutput("Weight@GRAD")),
        weight_rows_(wants_weight_ ? layer.capacity.rows : 0),
        weights_(layer.capacity.sequences, layer.cell.size, /*is_transposed=*/true),
        weight_gradient_(weight_rows_, layer.cell.size),
        weight_(context, "Weight"),
        reset_grad_(context, layer.capacity.sequences, layer.cell.size),
        reset_(context, weight_rows_, layer.cell.size) {}

  int64_t workspace_bytes() const {
    return std::max(weights_.workspace_bytes(), weight_gradient_.workspace_bytes());
  }
  bool AcceptsFewerRows() const { return true; }

  void Begin(const KernelContext& run, const CudaCellGradient<T>& of) {
    args_ = {};
    args_.cell = layer_.cell;
    args_.hidden = of.hidden;
    args_.h0 = of.h0;
    args_.batch_gates = of.batch_gates;
    args_.hidden_grad = of.hidden_grad;
    args_.next = of.next;
    args_.has_all_next = of.has_all_next;
    args_.reset_grad = reset_grad_(run);
    args_.batch_gates_grad = of.batch_gates_grad;
    args_.input_grad = of.input_grad;
    args_.batch_before = of.batch_before;
    args_.batch_reset = wants_weight_ ? reset_(run) : nullptr;
  }

  void Run(const KernelContext& run, const CudaStep& step, bool wants_before, int space) const {
    weights_.Backward(run, step, args_, weight_(run), reset_grad_(run), wants_before, space);
  }

  void End(const KernelContext&, const CudaTimeSteps&, int64_t) const {}

  void SumWeight(const KernelContext& run, const T* before, const T* gates, int64_t rows,
                 T* weight_grad, int space) const {
    ClearRows(run, args_.batch_reset, rows, weight_rows_, layer_.cell.size);
    weight_gradient_.Run(run, before, args_.batch_reset, gates, weight_grad, space);
  }
  // There are neither other weights nor peepholes.
  void SumOthers(const KernelContext&, int64_t, int) const {}
  void SumPeepholes(const KernelContext&, int64_t, T*) const {}

 private:
  Layer layer_;
  bool wants_weight_;    // the gradient of Weight
  int64_t weight_rows_;  // in the sum of this gradient
  CudaGruWeights<T> weights_;
  CudaGruWeightGradient<T> weight_gradient_;
  In<T> weight_;
  Workspace<T> reset_grad_;
  Workspace<T> reset_;  // of all rows, in batch order
  GruBackwardStep<T> args_;
};

}  // namespace skiff
