// The cells of attention_decoder: what a time step does beside the attention. A step is that of all
// sequences that have a row in it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/base/parallel.h"
#include "framework/op/kernel.h"
#include "operators/sequence/kernels/gru_cell.h"
#include "operators/sequence/kernels/gru_weights.h"
#include "operators/sequence/kernels/lstm_cell.h"
#include "operators/sequence/kernels/recurrent_weight.h"
#include "operators/sequence/kernels/rows_product.h"
#include "operators/sequence/kernels/time_steps.h"

namespace skiff {

template <typename T>
T* Data(const KernelContext& run, int workspace) {
  return static_cast<T*>(run.workspace(workspace));
}
// Returns nullptr for an absent argument.
template <typename T>
const T* InputOrNull(const KernelContext& run, int input) {
  return input < 0 ? nullptr : run.input(input).template data<T>();
}

// The rows of a time step. Arrays with a row for each sequence of the step begin with the longest.
struct StepOfRows {
  const TimeSteps& steps;
  const TimeSteps::Step& step;

  int64_t Row(int64_t j) const { return steps.Row(j, step.time); }
  // Calls body(j) for each sequence, on several threads; `numbers` are computed for one.
  template <typename Body>
  void ForEach(int64_t numbers, const Body& body) const {
    ParallelFor(step.count, RecurrentGrain(numbers), [&](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j) body(j);
    });
  }
};

// The states of all rows, to find those before a row.
template <typename T>
struct StateRows {
  const T* rows;
  const T* initial;
  const T* zeros;
  int64_t width;

  const T* Before(const StepOfRows& step, int64_t j) const {
    return step.steps.StateBefore(j, step.step.time, rows, initial, zeros, width);
  }
};

// A step of the cell, after the attention.
template <typename T>
struct CellStep {
  const T* input;  // of all rows
  T* hidden;       // of all rows
  T* states;       // before the step, then after it
  T* gates;        // the product of the contexts, if there is one; then activated
  bool has_product;
};

template <typename T>
struct CellGradient {
  StateRows<T> before;
  const T* hidden;  // the gradient from the outside, of all rows
  const T* gates;   // activated
  T* next;          // the gradient of the states, from later steps; then of those before
  T* step_gates;    // on return the gradient of g
  T* all_gates;     // the same for all rows
};

template <typename T>
class GruDecoderCell {
 public:
  GruDecoderCell(PrepareContext& context, int64_t size, int64_t sentences, bool is_gradient)
      : size_(size),
        weights_(context, size_, is_gradient),
        bias_(context.InputIndex("Bias")),
        weight_rows_(
            is_gradient && context.HasOutput("Weight@GRAD") ? context.Input("Input").shape[0] : 0),
        reset_(RequestNumbers<T>(context, sentences, size_)),
        reset_rows_(RequestNumbers<T>(context, weight_rows_, size_)) {}

  void Begin(const KernelContext& run, const StateRows<T>&) {
    cell_ = {.size = size_,
             .gate = RecurrentActivation::kSigmoid,
             .candidate = RecurrentActivation::kTanh,
             .bias = InputOrNull<T>(run, bias_)};
  }

  void Forward(const KernelContext& run, const StepOfRows& rows, const CellStep<T>& step) const {
    const int64_t count = rows.step.count;
    T* reset = Data<T>(run, reset_);
    weights_.gates.Multiply(run, step.states, count, size_, step.has_product, step.gates,
                            3 * size_);
    rows.ForEach(3 * size_, [&](int64_t j) {
      GruReset(cell_, step.input + rows.Row(j) * 3 * size_, step.states + j * size_,
               step.gates + j * 3 * size_, reset + j * size_);
    });
    weights_.candidate.Multiply(run, reset, count, size_, step.has_product, step.gates + 2 * size_,
                                3 * size_);
    rows.ForEach(3 * size_, [&](int64_t j) {
      T* hidden = step.hidden + rows.Row(j) * size_;
      GruForward(cell_, step.input + rows.Row(j) * 3 * size_, step.states + j * size_,
                 step.gates + j * 3 * size_, hidden);
      std::copy_n(hidden, size_, step.states + j * size_);
    });
  }

  void BeginBackward(const KernelContext&) {}
  void Backward(const KernelContext& run, const StepOfRows& rows, const CellGradient<T>& gradient) {
    T* reset_grad = Data<T>(run, reset_);
    const auto gradient_of = [&](int64_t j) {
      return GruStepGradient<T>{.hidden = gradient.hidden + rows.Row(j) * size_,
                                .before = gradient.next + j * size_,
                                .gates = gradient.step_gates + j * 3 * size_};
    };
    rows.ForEach(3 * size_, [&](int64_t j) {
      GruBackward(cell_, gradient.before.Before(rows, j), gradient.gates + j * 3 * size_,
                  gradient_of(j));
    });
    weights_.candidate.Multiply(run, gradient.step_gates + 2 * size_, rows.step.count, 3 * size_,
                                false, reset_grad, size_);
    rows.ForEach(3 * size_, [&](int64_t j) {
      const int64_t row = rows.Row(j);
      const T* before = gradient.before.Before(rows, j);
      const T* gates = gradient.gates + j * 3 * size_;
      GruResetBackward(cell_, before, gates, reset_grad + j * size_, gradient_of(j));
      std::copy_n(gradient.step_gates + j * 3 * size_, 3 * size_,
                  gradient.all_gates + row * 3 * size_);
      if (weight_rows_ == 0) return;
      T* reset = Data<T>(run, reset_rows_) + row * size_;
      for (int64_t i = 0; i < size_; ++i) reset[i] = gates[size_ + i] * before[i];
    });
    weights_.gates.Multiply(run, gradient.step_gates, rows.step.count, 3 * size_, true,
                            gradient.next, size_);
  }
  void EndBackward(const KernelContext&, const TimeSteps&) const {}

  // Sets the gradient of Weight. `product` holds the gradient of g of all rows.
  void WeightGradient(const KernelContext& run, const RowsProduct<T>& product,
                      const MatrixRows<T>& before, const T* all_gates, int64_t rows, T* to) const {
    product.WithColumns(2 * size_).Multiply(run, before, size_, rows, to);
    const RowsProduct<T> candidate = product.WithColumns(size_);
    candidate.Pack(run, {.first = all_gates + 2 * size_, .stride = 3 * size_}, rows);
    candidate.Multiply(run, {.first = Data<T>(run, reset_rows_), .stride = size_}, size_, rows,
                       to + 2 * size_ * size_);
  }

 private:
  int64_t size_;
  GruWeights<T> weights_;
  GruCell<T> cell_ = {};
  int bias_;
  int64_t weight_rows_;  // that the gradient of Weight is summed over, if it is wanted
  // Workspaces.
  int reset_;       // the reset states, or their gradient
  int reset_rows_;  // the reset states of all rows
};

template <typename T>
class LstmDecoderCell {
 public:
  LstmDecoderCell(PrepareContext& context, int64_t size, int64_t sentences, bool is_gradient)
      : size_(size),
        weight_(context, context.InputIndex("Weight"), {0, size_, 4 * size_}, is_gradient),
        bias_(context.InputIndex("Bias")),
        c0_(context.InputIndex("C0")),
        cell_in_(is_gradient ? context.InputIndex("Cell") : -1),
        cell_out_(is_gradient ? -1 : context.OutputIndex("Cell")),
        activated_in_(is_gradient ? context.InputIndex("BatchCellPreAct") : -1),
        activated_out_(is_gradient ? -1 : context.OutputIndex("BatchCellPreAct")),
        cell_grad_(is_gradient ? context.InputIndex("Cell@GRAD") : -1),
        c0_grad_(is_gradient ? context.OutputIndex("C0@GRAD") : -1),
        forget_bias_(context.Attr<float>("forget_bias")),
        full_bias_(RequestNumbers<T>(context, bias_ < 0 || forget_bias_ != 0 ? 1 : 0, 4 * size_)),
        cells_(RequestNumbers<T>(context, Room(context, !is_gradient && cell_out_ < 0), size_)),
        activated_(RequestNumbers<T>(context, sentences, size_)),
        next_cell_(RequestNumbers<T>(context, is_gradient ? sentences : 0, size_)),
        sentences_(sentences) {}

  void Begin(const KernelContext& run, const StateRows<T>& states) {
    cell_ = {.size = size_,
             .gate = RecurrentActivation::kSigmoid,
             .cell = RecurrentActivation::kTanh,
             .candidate = RecurrentActivation::kTanh,
             .order = {.candidate = 3, .input = 0, .forget = 1, .output = 2},
             .bias = InputOrNull<T>(run, bias_)};
    if (bias_ < 0 || forget_bias_ != 0) {
      T* bias = Data<T>(run, full_bias_);
      if (bias_ < 0) {
        std::fill_n(bias, 4 * size_, T{0});
      } else {
        std::copy_n(cell_.bias, 4 * size_, bias);
      }
      for (int64_t i = 0; i < size_; ++i) bias[cell_.order.forget * size_ + i] += forget_bias_;
      cell_.bias = bias;
    }
    before_ = {.rows = CellRows(run),
               .initial = InputOrNull<T>(run, c0_),
               .zeros = states.zeros,
               .width = size_};
  }

  void Forward(const KernelContext& run, const StepOfRows& rows, const CellStep<T>& step) const {
    weight_.Multiply(run, step.states, rows.step.count, size_, step.has_product, step.gates,
                     4 * size_);
    T* cells = cell_out_ < 0 ? Data<T>(run, cells_) : run.output(cell_out_).template data<T>();
    T* activated = StepRows<T>(run, activated_out_, activated_, rows.step, size_);
    rows.ForEach(4 * size_, [&](int64_t j) {
      const int64_t row = rows.Row(j);
      LstmForward(cell_, step.input + row * 4 * size_,
                  {.cell_before = before_.Before(rows, j),
                   .gates = step.gates + j * 4 * size_,
                   .cell = cells + row * size_,
                   .activated_cell = activated + j * size_},
                  step.hidden + row * size_);
      std::copy_n(step.hidden + row * size_, size_, step.states + j * size_);
    });
  }

  void BeginBackward(const KernelContext& run) {
    std::fill_n(Data<T>(run, next_cell_), sentences_ * size_, T{0});
  }
  void Backward(const KernelContext& run, const StepOfRows& rows, const CellGradient<T>& gradient) {
    const T* cells = CellRows(run);
    const T* activated = InputOrNull<T>(run, activated_in_) + rows.step.first * size_;
    const T* cell_grad = InputOrNull<T>(run, cell_grad_);
    T* next_cell = Data<T>(run, next_cell_);
    rows.ForEach(4 * size_, [&](int64_t j) {
      const int64_t row = rows.Row(j);
      T* gates = gradient.step_gates + j * 4 * size_;
      LstmBackward(
          cell_,
          LstmStep<const T>{.cell_before = before_.Before(rows, j),
                            .gates = gradient.gates + j * 4 * size_,
                            .cell = cells + row * size_,
                            .activated_cell = activated + j * size_},
          LstmStepGradient<T>{.hidden = gradient.hidden + row * size_,
                              .cell = cell_grad == nullptr ? nullptr : cell_grad + row * size_,
                              .next_hidden = gradient.next + j * size_,
                              .next_cell = next_cell + j * size_,
                              .gates = gates});
      std::copy_n(gates, 4 * size_, gradient.all_gates + row * 4 * size_);
    });
    weight_.Multiply(run, gradient.step_gates, rows.step.count, 4 * size_, false, gradient.next,
                     size_);
  }
  void EndBackward(const KernelContext& run, const TimeSteps& steps) const {
    if (c0_grad_ < 0) return;
    steps.FromLongestFirst<T>(Data<T>(run, next_cell_), size_,
                              run.output(c0_grad_).template data<T>());
  }

  void WeightGradient(const KernelContext& run, const RowsProduct<T>& product,
                      const MatrixRows<T>& before, const T*, int64_t rows, T* to) const {
    product.Multiply(run, before, size_, rows, to);
  }

 private:
  static int64_t Room(const OpContext& context, bool is_needed) {
    return is_needed ? context.Input("Input").shape[0] : 0;
  }

  // Returns the cells of all rows.
  const T* CellRows(const KernelContext& run) const {
    if (cell_in_ >= 0) return run.input(cell_in_).template data<T>();
    return cell_out_ < 0 ? Data<T>(run, cells_) : run.output(cell_out_).template data<T>();
  }

  int64_t size_;
  RecurrentWeight<T> weight_;
  LstmCell<T> cell_ = {};
  StateRows<T> before_ = {};
  int bias_;
  int c0_;
  int cell_in_;
  int cell_out_;
  int activated_in_;
  int activated_out_;
  int cell_grad_;
  int c0_grad_;
  T forget_bias_;
  // Workspaces.
  int full_bias_;  // with that of the forget gate
  int cells_;
  int activated_;
  int next_cell_;
  int64_t sentences_;  // at most
};

}  // namespace skiff
