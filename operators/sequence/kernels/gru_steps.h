// The time steps of a layer of gated recurrent units on the CPU, forward and backward: of gru and
// attention_decoder, whose slots have the same names.
#pragma once

#include <algorithm>
#include <cstdint>

#include "operators/sequence/kernels/gru_layer.h"
#include "operators/sequence/kernels/gru_weights.h"
#include "operators/sequence/kernels/recurrent_steps.h"
#include "operators/sequence/kernels/rows_product.h"

namespace skiff {

template <typename T>
class GruForwardSteps {
  using Wide = WideType<T>;

 public:
  using Layer = GruLayer<Wide>;
  static constexpr bool kReadsZeros = false;

  GruForwardSteps(PrepareContext& context, const Layer& layer)
      : layer_(layer),
        weights_(context, layer.cell.size, /*is_transposed=*/false),
        bias_(context, {context, "Bias"}, layer.gates_width()),
        reset_(context, OutputIfAny<T>(context, "BatchResetHiddenPrev"), layer.capacity.sequences,
               layer.cell.size),
        batch_hidden_(OutputIfAny<T>(context, "BatchHidden")) {}

  void Begin(const KernelContext& run, const Wide*) {
    bias_.Load(run);
    cell_ = layer_.CellWith(bias_(run));
    functions_ = GruFunctions<T>::Used();
  }

  void Run(const KernelContext& run, const StepOfRows& rows, const CellStep<T>& step) const {
    const int64_t size = cell_.size;
    const int64_t count = rows.step.count;
    T* reset = reset_(run, rows.step);
    T* batch_hidden =
        batch_hidden_.is_there() ? batch_hidden_(run) + rows.step.first * size : nullptr;
    MultiplyStates(run, weights_.gates, rows, step, size, 3 * size);
    rows.ForEach(3 * size, [&](int64_t j) {
      functions_.reset(cell_, step.input + rows.Row(j) * 3 * size, step.states.wide + j * size,
                       step.gates + j * 3 * size, reset + j * size);
    });
    if (step.product != StateProduct::kNone) {
      const bool adds = step.product == StateProduct::kAdd;
      weights_.candidate.Multiply(run, reset, count, size, adds, step.gates + 2 * size, 3 * size);
    }
    rows.ForEach(3 * size, [&](int64_t j) {
      const WideAndStored<T> state = step.states + j * size;
      functions_.forward(cell_, step.input + rows.Row(j) * 3 * size, state.wide,
                         step.gates + j * 3 * size, state.wide, state.stored);
      const T* hidden = state.stored;
      std::copy_n(hidden, size, step.hidden + rows.Row(j) * size);
      if (batch_hidden != nullptr) std::copy_n(hidden, size, batch_hidden + j * size);
    });
  }

 private:
  Layer layer_;
  GruWeights<T> weights_;
  GruCell<Wide> cell_ = {};
  GruFunctions<T> functions_ = {};
  WidenedInput<T> bias_;
  StepNumbers<T> reset_;
  Out<T> batch_hidden_;
};

template <typename T>
class GruBackwardSteps {
  using Wide = WideType<T>;

 public:
  using Layer = GruLayer<Wide>;
  // The reset states that Sum reads are in the order of the LoD.
  static constexpr bool kSumsInAnyOrder = false;

  GruBackwardSteps(PrepareContext& context, const Layer& layer)
      : cell_(layer.cell),
        weights_(context, layer.cell.size, /*is_transposed=*/true),
        wants_reset_(context.HasOutput("Weight@GRAD")),
        reset_grad_(context, layer.capacity.sequences, layer.cell.size),
        reset_(context, wants_reset_ ? layer.capacity.rows : 0, layer.cell.size) {}

  void Begin(const KernelContext&, const Wide*, int64_t) { functions_ = GruFunctions<T>::Used(); }

  void Run(const KernelContext& run, const StepOfRows& rows, const CellGradient<T>& of) const {
    const int64_t size = cell_.size;
    Wide* reset_grad = reset_grad_(run);
    const auto gradient_of = [&](int64_t j) {
      return GruStepGradient<T>{.hidden = of.hidden + rows.Row(j) * size,
                                .before = of.next + j * size,
                                .gates = of.step_gates.wide + j * 3 * size};
    };
    rows.ForEach(3 * size, [&](int64_t j) {
      functions_.backward(cell_, of.before.Before(rows, j), of.gates + j * 3 * size,
                          gradient_of(j));
      (of.step_gates + (j * 3 + 2) * size).Store(size);
    });
    weights_.candidate.Multiply(run, of.step_gates.stored + 2 * size, rows.step.count, 3 * size,
                                false, reset_grad, size);
    rows.ForEach(3 * size, [&](int64_t j) {
      const T* before = of.before.Before(rows, j);
      const Wide* gates = of.gates + j * 3 * size;
      functions_.reset_backward(cell_, before, gates, reset_grad + j * size, gradient_of(j));
      of.StoreGates(rows, j, 3 * size);
      if (!wants_reset_) return;
      functions_.reset_state(cell_, before, gates, reset_(run) + rows.Row(j) * size);
    });
    if (!of.wants_before) return;
    weights_.gates.Multiply(run, of.step_gates.stored, rows.step.count, 3 * size, true, of.next,
                            size);
  }

  void End(const KernelContext&, const TimeSteps&, int64_t) const {}

  using WeightProduct = GruWeightGradient<T>;
  static WeightProduct MakeProduct(PrepareContext& context, const Layer& layer, int64_t rows) {
    return {context, layer.cell.size, rows};
  }
  void Sum(const KernelContext& run, const WeightProduct& products, const T* before, const T* gates,
           int64_t rows, T* to) const {
    products.Run(run, rows, before, reset_(run), gates, to);
  }
  void Sum(const KernelContext& run, const RowsProduct<T>& product, const MatrixRows<T>& before,
           const T* gates, int64_t rows, T* to) const {
    const int64_t size = cell_.size;
    product.WithColumns(2 * size).Multiply(run, before, size, rows, to);
    const RowsProduct<T> candidate = product.WithColumns(size);
    candidate.Pack(run, {.first = gates + 2 * size, .stride = 3 * size}, rows);
    candidate.Multiply(run, {.first = reset_(run), .stride = size}, size, rows,
                       to + 2 * size * size);
  }

  // There are no peepholes.
  template <typename Gates>
  void SumPeepholes(const KernelContext&, const TimeSteps&, const Gates&, T*) const {}

 private:
  GruCell<Wide> cell_;
  GruFunctions<T> functions_ = {};
  GruWeights<T> weights_;
  bool wants_reset_;  // for the gradient of Weight
  Workspace<Wide> reset_grad_;
  Workspace<T> reset_;  // of all rows
};

}  // namespace skiff
