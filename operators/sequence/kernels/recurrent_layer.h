// The kernels of recurrent layers over the rows of ragged sequences on the CPU: lstm, lstmp, gru.
// The sequences run side by side; each time step is one of a cell for all sequences that have a row
// in it, and the gradient is the same from the last step to the first.
//
// Steps are the time steps of a layer in one direction (lstm_steps.h, gru_steps.h).
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/base/str_cat.h"
#include "operators/common/cpu/reduce.h"
#include "operators/sequence/kernels/column_sums.h"
#include "operators/sequence/kernels/recurrent_steps.h"
#include "operators/sequence/kernels/rows_product.h"

namespace skiff {

// The forward kernel.
template <typename T, ForwardSteps<T> Steps>
class RecurrentKernel final : public Kernel {
 public:
  RecurrentKernel(PrepareContext& context, const typename Steps::Layer& layer)
      : rows_(context, layer, context.Attr<bool>("is_reverse"), Steps::kReadsZeros),
        steps_(context, layer),
        hidden_(context, layer.states()),
        states_(context, layer.capacity.sequences, layer.state_width()),
        wide_states_(context, layer.capacity.sequences, layer.state_width()),
        gates_(context, "BatchGate", layer.capacity.sequences, layer.gates_width()) {}

  bool AcceptsFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    const TimeSteps steps = rows_.Steps(run);
    const WideAndStored<T> zeros = rows_.Zeros(run);
    const StateRows<T> before = rows_.States(run, hidden_(run), zeros.stored);
    const WideAndStored<T> states = wide_states_(run, states_(run));
    steps_.Begin(run, zeros.wide);
    steps.ForEach([&](const TimeSteps::Step& step) {
      const StepOfRows rows{steps, step};
      if (step.time == 0) before.CopyInitial(rows, states);
      steps_.Run(run, rows,
                 {.input = rows_.input(run),
                  .hidden = hidden_(run),
                  .states = states,
                  .gates = gates_(run, step),
                  .product = step.time > 0 || rows_.h0.is_there() ? StateProduct::kSet
                                                                  : StateProduct::kNone});
      gates_.Save(run, step);
    });
  }

 private:
  RecurrentRows<T> rows_;
  Steps steps_;
  Out<T> hidden_;
  Workspace<T> states_;
  WideWorkspace<T> wide_states_;
  SavedNumbers<T> gates_;
};

// The gradients of Weight and Bias, which are sums over all rows: here in the order of the LoD.
template <typename T, typename Steps>
class SumsInRowOrder {
 public:
  SumsInRowOrder(PrepareContext& context, const typename Steps::Layer& layer)
      : weight_grad_(context, "Weight@GRAD"),
        bias_grad_(context, "Bias@GRAD"),
        most_rows_(weight_grad_.is_there() ? layer.capacity.rows : 0),
        width_(layer.state_width()),
        gates_width_(layer.gates_width()),
        product_(Steps::MakeProduct(context, layer, most_rows_)),
        step_gates_(context, layer.capacity.sequences, gates_width_),
        wide_gates_(context, layer.capacity.sequences, gates_width_),
        row_gates_(context, Out<T>(context, "Input@GRAD"), layer.capacity.rows, gates_width_),
        before_(context, most_rows_, width_) {}

  // Return where the gradient of g goes: that of a step, and that of all rows in the order of the
  // LoD.
  WideAndStored<T> StepGates(const KernelContext& run, const TimeSteps::Step&) const {
    return wide_gates_(run, step_gates_(run));
  }
  T* RowGates(const KernelContext& run) const { return row_gates_(run); }

  // Writes the wanted gradients, after the steps of a run of `rows` rows.
  void Write(const KernelContext& run, const TimeSteps& steps, int64_t rows,
             const StateRows<T>& before, const Steps& cell) const {
    const T* gates = row_gates_(run);
    if (weight_grad_.is_there()) {
      T* before_rows = before_(run);
      steps.ForEach([&](const TimeSteps::Step& step) {
        const StepOfRows of{steps, step};
        of.ForEach(width_, [&](int64_t j) {
          std::copy_n(before.Before(of, j), width_, before_rows + of.Row(j) * width_);
        });
      });
      cell.Sum(run, product_, before_rows, gates, rows, weight_grad_(run));
    }
    if (!bias_grad_.is_there()) return;
    if constexpr (kIsHalf<T>) {
      AddUpColumns(gates, rows, gates_width_, gates_width_, bias_grad_(run));
    } else {
      AxisReduction({rows, gates_width_}, {true, false}).Sum(gates, bias_grad_(run));
    }
    cell.SumPeepholes(
        run, steps,
        [&](const TimeSteps::Step& step, int64_t j) {
          return gates + steps.Row(j, step.time) * gates_width_;
        },
        bias_grad_(run));
  }

 private:
  Out<T> weight_grad_;
  Out<T> bias_grad_;
  int64_t most_rows_;  // that the gradient of Weight is summed over, if it is wanted
  int64_t width_;
  int64_t gates_width_;
  typename Steps::WeightProduct product_;
  Workspace<T> step_gates_;
  WideWorkspace<T> wide_gates_;
  OutputOrWorkspace<T> row_gates_;
  Workspace<T> before_;  // the states before all rows
};

// The same in batch order (time_steps.h). RowGates returns nullptr if Input@GRAD isn't wanted.
template <typename T, typename Steps>
class SumsInBatchOrder {
  static_assert(Steps::kSumsInAnyOrder);

 public:
  SumsInBatchOrder(PrepareContext& context, const typename Steps::Layer& layer)
      : weight_grad_(context, "Weight@GRAD"),
        bias_grad_(context, "Bias@GRAD"),
        input_grad_(context, "Input@GRAD"),
        gates_width_(layer.gates_width()),
        product_(context, weight_grad_.is_there() ? layer.capacity.rows : 0, gates_width_,
                 layer.state_width()),
        gates_(context, layer.capacity.rows, gates_width_),
        wide_gates_(context, layer.capacity.sequences, gates_width_),
        before_(context, layer.capacity.rows) {}

  WideAndStored<T> StepGates(const KernelContext& run, const TimeSteps::Step& step) const {
    return wide_gates_(run, gates_(run) + step.first * gates_width_);
  }
  T* RowGates(const KernelContext& run) const { return input_grad_(run); }

  void Write(const KernelContext& run, const TimeSteps& steps, int64_t rows,
             const StateRows<T>& before, const Steps& cell) const {
    const T* gates = gates_(run);
    if (weight_grad_.is_there()) {
      const T** before_rows = before_(run);
      steps.ForEach([&](const TimeSteps::Step& step) {
        const StepOfRows of{steps, step};
        for (int64_t j = 0; j < step.count; ++j) before_rows[step.first + j] = before.Before(of, j);
      });
      product_.Pack(run, {.first = gates, .stride = gates_width_}, rows);
      cell.Sum(run, product_, {.each = before_rows}, gates, rows, weight_grad_(run));
    }
    if (!bias_grad_.is_there()) return;
    AddUpColumns(gates, rows, gates_width_, gates_width_, bias_grad_(run));
    cell.SumPeepholes(
        run, steps,
        [&](const TimeSteps::Step& step, int64_t j) {
          return gates + (step.first + j) * gates_width_;
        },
        bias_grad_(run));
  }

 private:
  Out<T> weight_grad_;
  Out<T> bias_grad_;
  Out<T> input_grad_;
  int64_t gates_width_;
  RowsProduct<T> product_;
  Workspace<T> gates_;
  WideWorkspace<T> wide_gates_;
  Workspace<const T*> before_;  // where the states before all rows are
};

// The gradient. Sums: SumsInRowOrder or SumsInBatchOrder, the order of the sums over all rows.
template <typename T, BackwardSteps<T> Steps, template <typename, typename> class Sums>
class RecurrentGradKernel final : public Kernel {
 public:
  RecurrentGradKernel(PrepareContext& context, const typename Steps::Layer& layer)
      : rows_(context, layer, context.Attr<bool>("is_reverse")),
        steps_(context, layer),
        sums_(context, layer),
        width_(layer.state_width()),
        hidden_(context, layer.states()),
        gates_(context, {context, "BatchGate"}, layer.capacity.sequences, layer.gates_width()),
        hidden_grad_(context, StrCat(layer.states(), "@GRAD")),
        h0_grad_(context, "H0@GRAD"),
        next_(context, layer.capacity.sequences, width_) {}

  bool AcceptsFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    const TimeSteps steps = rows_.Steps(run);
    const int64_t sequences = rows_.Sequences(run).size();
    const int64_t rows = hidden_.shape(run)[0];
    const WideAndStored<T> zeros = rows_.Zeros(run);
    const StateRows<T> before = rows_.States(run, hidden_(run), zeros.stored);
    WideType<T>* next = next_(run);
    std::fill_n(next, sequences * width_, WideType<T>{0});
    steps_.Begin(run, zeros.wide, sequences);
    steps.ForEachBackwards([&](const TimeSteps::Step& step) {
      steps_.Run(run, {steps, step},
                 {.before = before,
                  .hidden = hidden_grad_(run),
                  .gates = gates_(run, step),
                  .next = next,
                  .step_gates = sums_.StepGates(run, step),
                  .row_gates = sums_.RowGates(run),
                  .wants_before = step.time > 0 || h0_grad_.is_there()});
    });
    if (h0_grad_.is_there()) steps.FromLongestFirst<T>(next, width_, h0_grad_(run));
    steps_.End(run, steps, rows);
    sums_.Write(run, steps, rows, before, steps_);
  }

 private:
  RecurrentRows<T> rows_;
  Steps steps_;
  Sums<T, Steps> sums_;
  int64_t width_;
  In<T> hidden_;
  ReadNumbers<T> gates_;
  In<T> hidden_grad_;
  Out<T> h0_grad_;
  Workspace<WideType<T>>
      next_;  // the gradient of the states from later steps, of the longest first
};

}  // namespace skiff
