// The arguments of the cells of recurrent layers in a time step, on the CPU. A step is that of all
// sequences that have a row in it. Arrays with a row for each sequence of the step begin with the
// longest one; arrays of all rows are in the order of the LoD.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <string_view>

#include "framework/base/parallel.h"
#include "operators/sequence/kernels/recurrent_arguments.h"
#include "operators/sequence/kernels/recurrent_weight.h"
#include "operators/sequence/kernels/rows_product.h"
#include "operators/sequence/kernels/time_steps.h"
#include "operators/sequence/kernels/wide_and_stored.h"
#include "operators/sequence/kernels/workspace.h"

namespace skiff {

// The rows of a time step.
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
  const T* initial;  // of all sequences in the order of the LoD, or nullptr: zeros
  const T* zeros;
  int64_t width;

  // Returns the state before the row that sequence j has in the step.
  const T* Before(const StepOfRows& step, int64_t j) const {
    return step.steps.StateBefore(j, step.step.time, rows, initial, zeros, width);
  }
  // Sets the states of a first step to the states before the step. Needs no zeros.
  void CopyInitial(const StepOfRows& first, const WideAndStored<T>& states) const {
    const int64_t count = first.step.count * width;
    if (initial == nullptr) {
      std::fill_n(states.stored, count, T{});
    } else {
      first.steps.ToLongestFirst(initial, width, states.stored);
    }
    WidenRow(states.stored, count, states.wide);
  }
};

// Numbers of the rows of a step: where an output has the rows in batch order or, if the op lacks
// the output, in a workspace for one step.
template <typename T>
class StepNumbers {
 public:
  StepNumbers(PrepareContext& context, const Out<T>& output, int64_t sequences, int64_t width)
      : numbers_(context, output, sequences, width), width_(width) {}

  T* operator()(const KernelContext& run, const TimeSteps::Step& step) const {
    return numbers_(run) + (numbers_.is_output() ? step.first * width_ : 0);
  }

 private:
  OutputOrWorkspace<T> numbers_;
  int64_t width_;
};

// Numbers of the rows of a step that an op saves for the gradient, if there is an output for them.
// The output has the rows in batch order, and is of T: of half, the numbers are rounded.
template <typename T>
class SavedNumbers {
  using Wide = WideType<T>;

 public:
  SavedNumbers(PrepareContext& context, std::string_view slot, int64_t sequences, int64_t width)
      : saved_(context, slot),
        wide_(context, kIsHalf<T> || !saved_.is_there() ? sequences : 0, width),
        width_(width) {}

  // Returns where the numbers of a step are computed. Of half, every step has the same memory: call
  // Save before the next step.
  Wide* operator()(const KernelContext& run, const TimeSteps::Step& step) const {
    if constexpr (!kIsHalf<T>) {
      if (saved_.is_there()) return saved_(run) + step.first * width_;
    }
    return wide_(run);
  }
  // Rounds the numbers of a step to the output. Of other types, they are there already.
  void Save(const KernelContext& run, const TimeSteps::Step& step) const {
    if constexpr (kIsHalf<T>) {
      if (!saved_.is_there()) return;
      RoundAll(wide_(run), step.count * width_, saved_(run) + step.first * width_);
    }
  }

 private:
  Out<T> saved_;
  Workspace<Wide> wide_;  // of a step
  int64_t width_;
};

// The numbers that an op has saved by SavedNumbers, for its gradient.
template <typename T>
class ReadNumbers {
 public:
  ReadNumbers(PrepareContext& context, const In<T>& saved, int64_t sequences, int64_t width)
      : saved_(saved),
        wide_(context, kIsHalf<T> && saved.is_there() ? sequences : 0, width),
        width_(width) {}

  // Returns the numbers of a step, nullptr if the input is absent. Of half, every step has the same
  // memory.
  const WideType<T>* operator()(const KernelContext& run, const TimeSteps::Step& step) const {
    if (!saved_.is_there()) return nullptr;
    const T* saved = saved_(run) + step.first * width_;
    if constexpr (kIsHalf<T>) {
      WidenAll(saved, step.count * width_, wide_(run));
      return wide_(run);
    } else {
      return saved;
    }
  }

 private:
  In<T> saved_;
  Workspace<WideType<T>> wide_;  // of a step
  int64_t width_;
};

// The rows of a layer, which the op and its gradient have in common.
template <typename T>
class RecurrentRows {
 public:
  // `has_zeros`: whether there are zeros.
  template <typename Layer>
  RecurrentRows(PrepareContext& context, const Layer& layer, bool is_reverse, bool has_zeros = true)
      : input(context, "Input"),
        h0(context, "H0"),
        is_reverse_(is_reverse),
        width_(layer.state_width()),
        zeros_count_(has_zeros ? std::max(width_, layer.cell.size) : 0),
        order_(context, layer.capacity.sequences),
        zeros_(context, 1, zeros_count_),
        wide_zeros_(context, 1, zeros_count_) {}

  SequenceRows Sequences(const KernelContext& run) const { return SequenceRows(input.tensor(run)); }
  TimeSteps Steps(const KernelContext& run) const {
    return TimeSteps(Sequences(run), is_reverse_, order_(run));
  }
  // Returns as many zeros as a state or a cell has numbers, whichever has more; without `has_zeros`
  // there are none.
  WideAndStored<T> Zeros(const KernelContext& run) const {
    const WideAndStored<T> zeros = wide_zeros_(run, zeros_(run));
    std::fill_n(zeros.wide, zeros_count_, WideType<T>{0});
    zeros.Store(zeros_count_);
    return zeros;
  }
  // Returns the states, with the zeros of the run.
  StateRows<T> States(const KernelContext& run, const T* states, const T* zeros) const {
    return {.rows = states, .initial = h0(run), .zeros = zeros, .width = width_};
  }

  In<T> input;
  In<T> h0;

 private:
  bool is_reverse_;
  int64_t width_;
  int64_t zeros_count_;
  Workspace<int64_t> order_;
  Workspace<T> zeros_;
  WideWorkspace<T> wide_zeros_;
};

// The arguments of the forward step of a cell.
template <typename T>
struct CellStep {
  const T* input;           // of all rows
  T* hidden;                // of all rows, set
  WideAndStored<T> states;  // of the step: the states before the step, on return the states after
  WideType<T>* gates;       // of the step, on return activated
  StateProduct product;
};

// Gives the gates of a step, `gates_width` numbers each, the contributions of the step's states.
template <typename T>
void MultiplyStates(const KernelContext& run, const RecurrentWeight<T>& weight,
                    const StepOfRows& rows, const CellStep<T>& step, int64_t width,
                    int64_t gates_width) {
  const int64_t count = rows.step.count;
  if (step.product == StateProduct::kNone) {
    std::fill_n(step.gates, count * gates_width, WideType<T>{0});
  } else {
    const bool adds = step.product == StateProduct::kAdd;
    weight.Multiply(run, step.states.stored, count, width, adds, step.gates, gates_width);
  }
}

// What the gradient of a step of a cell gets. g: what the activated gates are made of.
template <typename T>
struct CellGradient {
  StateRows<T> before;
  const T* hidden;           // the gradient from the outside, of all rows
  const WideType<T>* gates;  // of the step, activated
  WideType<T>* next;         // of the step: the gradient of the states, on return of those before
  WideAndStored<T> step_gates;  // on return the gradient of g
  T* row_gates;                 // the same for all rows, in the order of the LoD, or nullptr
  bool wants_before = true;     // else nothing reads `next` after this step

  // Stores the gradient of g of sequence j, also in its row.
  void StoreGates(const StepOfRows& rows, int64_t j, int64_t gates_width) const {
    const WideAndStored<T> of_row = step_gates + j * gates_width;
    of_row.Store(gates_width);
    if (row_gates == nullptr) return;
    std::copy_n(of_row.stored, gates_width, row_gates + rows.Row(j) * gates_width);
  }
};

// The forward steps of a layer.
template <typename Steps, typename T>
concept ForwardSteps = RecurrentLayer<typename Steps::Layer> &&
    std::constructible_from<Steps, PrepareContext&, const typename Steps::Layer&> &&
    requires(Steps steps, const KernelContext& run, const WideType<T>* zeros,
             const StepOfRows& rows, const CellStep<T>& step) {
  // Whether the steps of a run read the zeros that Begin gets.
  { Steps::kReadsZeros } -> std::convertible_to<bool>;
  // Begins a run. `zeros` are as many as a state or a cell has numbers.
  steps.Begin(run, zeros);
  // Runs a step, from the first to the last one.
  steps.Run(run, rows, step);
};

// The gradients of the steps of a layer.
template <typename Steps, typename T>
concept BackwardSteps = RecurrentLayer<typename Steps::Layer> &&
    std::constructible_from<Steps, PrepareContext&, const typename Steps::Layer&> &&
    requires(Steps steps, PrepareContext& context, const typename Steps::Layer& layer,
             const KernelContext& run, const WideType<T>* zeros, int64_t count,
             const StepOfRows& rows, const CellGradient<T>& of, const TimeSteps& time,
             const RowsProduct<T>& of_gates, const typename Steps::WeightProduct& made,
             const MatrixRows<T>& before, const T* numbers,
             const T* (*gates)(const TimeSteps::Step&, int64_t), T* to) {
  // Begins a run of `count` sequences. `zeros` are as many as a state or a cell has numbers.
  steps.Begin(run, zeros, count);
  // Runs the gradient of a step, from the last to the first one.
  steps.Run(run, rows, of);
  // Ends the steps of a run of `count` rows: writes the gradients of inputs that only the steps
  // know.
  steps.End(run, time, count);

  // Then write the gradient of Weight, given the states before `count` rows and the gradient of
  // g: by a product made for at most `count` rows, or by a product that holds the gradient of g.
  { Steps::MakeProduct(context, layer, count) } -> std::same_as<typename Steps::WeightProduct>;
  steps.Sum(run, made, numbers, numbers, count, to);
  steps.Sum(run, of_gates, before, numbers, count, to);
  // Whether the rows of a sum may have another order than the LoD's.
  { Steps::kSumsInAnyOrder } -> std::convertible_to<bool>;
  // Writes the gradients of the peepholes, if there are any, behind the gradient of the bias.
  // gates(step, j) returns the gradient of g of sequence j.
  steps.SumPeepholes(run, time, gates, to);
};

}  // namespace skiff
