// The CUDA kernels of recurrent layers over the rows of ragged sequences, as recurrent_layer.h has
// them for the CPU: lstm, lstmp, gru. A time step is the products with the weights and the launches
// of its cell. The factors of the gradients of weights are in batch order, so that the rows of a
// step are adjacent for its products, and the rows of all steps for the sums.
//
// Steps are the time steps of a layer in one direction (cuda_lstm_steps.cuh, cuda_gru_steps.cuh).
#pragma once

#include <concepts>
#include <cstdint>

#include "framework/base/str_cat.h"
#include "operators/sequence/kernels/cuda_steps.cuh"
#include "operators/sequence/kernels/recurrent_arguments.h"
#include "operators/sequence/kernels/workspace.h"

namespace skiff {

// The arguments of a cell's forward steps in a run.
template <typename T>
struct CudaCellRun {
  const T* input;  // of all rows
  T* hidden;       // of all rows, set
  T* states;       // of the sequences of a step, the longest first: before the step, then after it
};

// The arguments of the gradients of a cell's steps in a run.
template <typename T>
struct CudaCellGradient {
  const T* hidden;            // of all rows
  const T* h0;                // nullptr: zeros
  const T* batch_gates;       // activated
  const T* hidden_grad;       // from the outside, of all rows
  T* next;                    // of the states of a step's sequences, from the next step
  bool has_all_next = false;  // it is there for all sequences of a step
  T* batch_gates_grad;        // set; products may read a step more
  T* input_grad;              // the same for all rows in their order, or nullptr
  T* batch_before;            // set to the states before the rows, or nullptr
};

// The forward steps of a layer.
template <typename Steps, typename T>
concept CudaForwardSteps = RecurrentLayer<typename Steps::Layer> &&
    std::constructible_from<Steps, PrepareContext&, const typename Steps::Layer&> &&
    requires(Steps steps, const KernelContext& run, const CudaCellRun<T>& of, const CudaStep& step,
             StateProduct product, int space) {
  // Of the workspace that its products need.
  { steps.workspace_bytes() } -> std::same_as<int64_t>;
  steps.Begin(run, of);
  // Returns the gates of a step's sequences, which hold something before a Run with kAdd.
  { steps.Gates(run) } -> std::same_as<T*>;
  // Runs a step, from the first to the last one. `space`: the workspace for products.
  steps.Run(run, step, product, space);
};

// The gradients of the steps of a layer.
template <typename Steps, typename T>
concept CudaBackwardSteps = RecurrentLayer<typename Steps::Layer> &&
    std::constructible_from<Steps, PrepareContext&, const typename Steps::Layer&> &&
    requires(Steps steps, const KernelContext& run, const CudaCellGradient<T>& of,
             const CudaStep& step, bool wants_before, int space, const CudaTimeSteps& time,
             int64_t count, const T* numbers, T* to) {
  { steps.workspace_bytes() } -> std::same_as<int64_t>;
  // As Kernel::AcceptsFewerRows.
  { steps.AcceptsFewerRows() } -> std::same_as<bool>;
  steps.Begin(run, of);
  // Runs the gradient of a step, from the last to the first one. `wants_before`: whether the
  // gradient of the states before the step is wanted.
  steps.Run(run, step, wants_before, space);
  // Ends the steps of a run, of which the first has `count` sequences: writes the gradients of
  // inputs that only the steps know.
  steps.End(run, time, count);

  // Then writes the gradient of Weight from `count` rows: the states before them and the
  // gradient of g, in batch order and with zeros after the rows.
  steps.SumWeight(run, numbers, numbers, count, to, space);
  // Writes the gradients of other weights, if there are any, from `count` rows.
  steps.SumOthers(run, count, space);
  // Writes the gradient of the peepholes, if there are any, behind the gradient of the bias, from
  // `count` sequences with rows.
  steps.SumPeepholes(run, count, to);
};

// The forward kernel.
template <typename T, CudaForwardSteps<T> Steps>
class CudaRecurrentKernel final : public Kernel {
 public:
  CudaRecurrentKernel(PrepareContext& context, const typename Steps::Layer& layer)
      : width_(layer.state_width()),
        time_(context, layer.capacity.sequences, context.Attr<bool>("is_reverse")),
        steps_(context, layer),
        input_(context, "Input"),
        h0_(context, "H0"),
        hidden_(context, layer.states()),
        states_(context, layer.capacity.sequences, width_),
        space_(RequestProductSpace(context, steps_)) {}

  bool AcceptsFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    time_.Load(run, SequenceRows(input_.tensor(run)));
    const T* h0 = h0_(run);
    T* states = states_(run);
    if (h0 != nullptr) LaunchLoadStates(run, time_, h0, width_, states);
    steps_.Begin(run, {input_(run), hidden_(run), states});
    time_.ForEach([&](const CudaStep& step) {
      const bool has_states = step.time > 0 || h0 != nullptr;
      steps_.Run(run, step, has_states ? StateProduct::kSet : StateProduct::kNone, space_);
    });
  }

 private:
  int64_t width_;
  CudaTimeSteps time_;
  Steps steps_;
  In<T> input_;
  In<T> h0_;
  Out<T> hidden_;
  Workspace<T> states_;
  int space_;
};

// The gradient.
template <typename T, CudaBackwardSteps<T> Steps>
class CudaRecurrentGradKernel final : public Kernel {
 public:
  CudaRecurrentGradKernel(PrepareContext& context, const typename Steps::Layer& layer)
      : width_(layer.state_width()),
        gates_width_(layer.gates_width()),
        most_rows_(layer.capacity.rows),
        time_(context, layer.capacity.sequences, context.Attr<bool>("is_reverse")),
        steps_(context, layer),
        input_(context, "Input"),
        h0_(context, "H0"),
        hidden_(context, layer.states()),
        batch_gate_(context, "BatchGate"),
        hidden_grad_(context, StrCat(layer.states(), "@GRAD")),
        input_grad_(context, "Input@GRAD"),
        weight_grad_(context, "Weight@GRAD"),
        bias_grad_(context, "Bias@GRAD"),
        h0_grad_(context, "H0@GRAD"),
        next_(context, layer.capacity.sequences, width_),
        // The products of the last steps may read after their rows.
        gates_(context, most_rows_ + layer.capacity.sequences, gates_width_),
        before_(context, weight_grad_.is_there() ? most_rows_ : 0, width_),
        space_(RequestProductSpace(context, steps_)) {}

  bool AcceptsFewerRows() const override { return steps_.AcceptsFewerRows(); }

  void Run(const KernelContext& run) override {
    time_.Load(run, SequenceRows(input_.tensor(run)));
    const int64_t rows = hidden_.shape(run)[0];
    T* next = next_(run);
    T* gates = gates_(run);
    T* before = weight_grad_.is_there() ? before_(run) : nullptr;
    steps_.Begin(run, {.hidden = hidden_(run),
                       .h0 = h0_(run),
                       .batch_gates = batch_gate_(run),
                       .hidden_grad = hidden_grad_(run),
                       .next = next,
                       .batch_gates_grad = gates,
                       .input_grad = input_grad_(run),
                       .batch_before = before});
    int64_t used = 0;  // sequences that have rows
    time_.ForEachBackwards([&](const CudaStep& step) {
      steps_.Run(run, step, step.time > 0 || h0_grad_.is_there(), space_);
      used = step.count;
    });
    if (h0_grad_.is_there()) LaunchStoreStates(run, time_, next, used, width_, h0_grad_(run));
    steps_.End(run, time_, used);
    if (weight_grad_.is_there()) {
      ClearRows(run, before, rows, most_rows_, width_);
      ClearRows(run, gates, rows, most_rows_, gates_width_);
      steps_.SumWeight(run, before, gates, rows, weight_grad_(run), space_);
    }
    steps_.SumOthers(run, rows, space_);
    if (!bias_grad_.is_there()) return;
    LaunchSumColumns(run, gates, rows, gates_width_, gates_width_, bias_grad_(run));
    steps_.SumPeepholes(run, used, bias_grad_(run));
  }

 private:
  int64_t width_;
  int64_t gates_width_;
  int64_t most_rows_;
  CudaTimeSteps time_;
  Steps steps_;
  In<T> input_;
  In<T> h0_;
  In<T> hidden_;
  In<T> batch_gate_;
  In<T> hidden_grad_;
  Out<T> input_grad_;
  Out<T> weight_grad_;
  Out<T> bias_grad_;
  Out<T> h0_grad_;
  Workspace<T> next_;
  Workspace<T> gates_;
  Workspace<T> before_;
  int space_;
};

}  // namespace skiff
