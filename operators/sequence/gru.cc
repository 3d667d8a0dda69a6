// gru: gated recurrent units over the rows of each sequence, in order or with is_reverse from the
// last row to the first. kernels/gru_cell.h has the formula of a step. Input has been multiplied
// with the weights of the layer already; Weight multiplies the hidden state.
//
//   Weight                [W_u W_r], a matrix [H, 2H], and after it W_c, [H, H]
//   BatchGate             u r c of each row, in batch order (kernels/time_steps.h)
//   BatchResetHiddenPrev  r ⊙ h' of each row, in batch order
//   BatchHidden           h of each row, in batch order
//
// Source: Fluid's gru (dynamic_gru).
//
// The sequences run side by side: each time step is two products of the states of all sequences
// that have a row in it. Gradient: the same from the last step to the first; those of the two
// matrices are products over all rows at the end.
#include <algorithm>
#include <string>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/common/reduce.h"
#include "operators/sequence/kernels/gru_cell.h"
#include "operators/sequence/kernels/gru_weights.h"
#include "operators/sequence/kernels/time_steps.h"

namespace skiff {
namespace {

int64_t SizeOf(const OpContext& context) {
  const Shape& weight = context.Input("Weight").shape;
  SKIFF_ENFORCE(weight.rank() == 2, kInvalidArgument, context.op().type, ": Weight is ", weight,
                ", expected a matrix");
  return weight[0];
}

// Checks the arguments that the op and its gradient have in common.
void CheckArguments(const OpContext& context) {
  const int64_t size = SizeOf(context);
  const int64_t gates = size < 0 ? -1 : MultiplyCounts(size, 3);
  const DType dtype = context.Input("Input").dtype;
  const int64_t sequences = SequenceCount(context, "Input");
  CheckInputLike(context, "Input", {-1, gates}, dtype);
  CheckInputLike(context, "Weight", {size, gates}, dtype);
  if (context.HasInput("Bias")) CheckInputLike(context, "Bias", {1, gates}, dtype);
  if (context.HasInput("H0")) CheckInputLike(context, "H0", {sequences, size}, dtype);
}

void Infer(OpContext& context) {
  CheckArguments(context);
  const TensorMeta& input = context.Input("Input");
  const Shape states = {input.shape[0], SizeOf(context)};
  context.SetOutput("Hidden", states, input.dtype);
  context.ShareLoD("Hidden", "Input");
  context.SetOutput("BatchGate", input.shape, input.dtype);
  context.SetOutput("BatchResetHiddenPrev", states, input.dtype);
  context.SetOutput("BatchHidden", states, input.dtype);
}

void InferGrad(OpContext& context) {
  CheckArguments(context);
  const TensorMeta& input = context.Input("Input");
  const Shape states = {input.shape[0], SizeOf(context)};
  for (const char* slot : {"Hidden", "BatchResetHiddenPrev", "BatchHidden", "Hidden@GRAD"}) {
    if (context.HasInput(slot)) CheckInputLike(context, slot, states, input.dtype);
  }
  CheckInputLike(context, "BatchGate", input.shape, input.dtype);
  for (const std::string slot : {"Input", "Weight", "Bias", "H0"}) {
    if (context.HasInput(slot)) context.SetOutputLike(slot + "@GRAD", slot);
  }
}

double Flop(const OpContext& context) {
  const Shape& weight = context.Input("Weight").shape;
  return 2.0 * static_cast<double>(context.Input("Input").shape[0]) *
         static_cast<double>(weight[0]) * static_cast<double>(weight[1]);
}

// What the kernels of the op and of its gradient have in common.
template <typename T>
class GruKernel : public Kernel {
 protected:
  GruKernel(PrepareContext& context, bool transposes_weights)
      : size_(SizeOf(context)),
        sequences_(SequenceCount(context, "Input")),
        is_reverse_(context.Attr<bool>("is_reverse")),
        cell_{.size = size_,
              .gate = ActivationOf(context, "gate_activation"),
              .candidate = ActivationOf(context, "activation"),
              .origin_mode = context.Attr<bool>("origin_mode")},
        weights_(context, size_, transposes_weights),
        input_(context.InputIndex("Input")),
        h0_(context.InputIndex("H0")),
        order_(RequestNumbers<int64_t>(context, sequences_, 1)) {}

  // Takes the sequences of the run, no more than those that the kernel was prepared for.
  TimeSteps Steps(const KernelContext& run) {
    const SequenceRows sequences(run.input(input_));
    sequences_ = sequences.size();
    return TimeSteps(sequences, is_reverse_, static_cast<int64_t*>(run.workspace(order_)));
  }
  int64_t grain() const { return RecurrentGrain(3 * size_); }

  int64_t size_;
  int64_t sequences_;
  bool is_reverse_;
  GruCell<T> cell_;
  GruWeights<T> weights_;
  int input_;
  int h0_;
  int order_;
};

template <typename T>
class ForwardKernel final : public GruKernel<T> {
 public:
  explicit ForwardKernel(PrepareContext& context)
      : GruKernel<T>(context, /*transposes_weights=*/false),
        bias_(context.InputIndex("Bias")),
        hidden_(context.OutputIndex("Hidden")),
        batch_gate_(context.OutputIndex("BatchGate")),
        batch_reset_(context.OutputIndex("BatchResetHiddenPrev")),
        batch_hidden_(context.OutputIndex("BatchHidden")),
        states_(RequestNumbers<T>(context, sequences_, size_)),
        gates_(RequestNumbers<T>(context, batch_gate_ < 0 ? sequences_ : 0, 3 * size_)),
        reset_(RequestNumbers<T>(context, batch_reset_ < 0 ? sequences_ : 0, size_)) {}

  bool TakesFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    const TimeSteps steps = this->Steps(run);
    GruCell<T> gru = this->cell_;
    if (bias_ >= 0) gru.bias = run.input(bias_).template data<T>();
    const T* input = run.input(this->input_).template data<T>();
    const T* h0 = this->h0_ < 0 ? nullptr : run.input(this->h0_).template data<T>();
    T* hidden = run.output(hidden_).template data<T>();
    T* batch_hidden = batch_hidden_ < 0 ? nullptr : run.output(batch_hidden_).template data<T>();
    // The hidden states of the sequences in this time step, of the longest sequence first.
    auto* states = static_cast<T*>(run.workspace(states_));
    std::fill_n(states, sequences_ * size_, T{0});
    if (h0 != nullptr) steps.ToLongestFirst(h0, size_, states);
    steps.ForEach([&](const TimeSteps::Step& step) {
      T* gates = StepRows<T>(run, batch_gate_, gates_, step, 3 * size_);
      T* reset = StepRows<T>(run, batch_reset_, reset_, step, size_);
      const bool has_states = step.time > 0 || h0 != nullptr;
      if (has_states) {
        this->weights_.gates.Multiply(run, states, step.count, size_, false, gates, 3 * size_);
      } else {
        std::fill_n(gates, step.count * 3 * size_, T{0});
      }
      ParallelFor(step.count, this->grain(), [&](int64_t begin, int64_t end) {
        for (int64_t j = begin; j < end; ++j) {
          GruReset(gru, input + steps.Row(j, step.time) * 3 * size_, states + j * size_,
                   gates + j * 3 * size_, reset + j * size_);
        }
      });
      if (has_states) {
        this->weights_.candidate.Multiply(run, reset, step.count, size_, false, gates + 2 * size_,
                                          3 * size_);
      }
      ParallelFor(step.count, this->grain(), [&](int64_t begin, int64_t end) {
        for (int64_t j = begin; j < end; ++j) {
          const int64_t row = steps.Row(j, step.time);
          T* row_hidden = hidden + row * size_;
          GruForward(gru, input + row * 3 * size_, states + j * size_, gates + j * 3 * size_,
                     row_hidden);
          std::copy_n(row_hidden, size_, states + j * size_);
          if (batch_hidden != nullptr)
            std::copy_n(row_hidden, size_, batch_hidden + (step.first + j) * size_);
        }
      });
    });
  }

 private:
  using GruKernel<T>::size_;
  using GruKernel<T>::sequences_;
  int bias_;
  int hidden_;
  int batch_gate_;
  int batch_reset_;
  int batch_hidden_;
  // Workspaces.
  int states_;
  int gates_;
  int reset_;
};

template <typename T>
class GradKernel final : public GruKernel<T> {
 public:
  explicit GradKernel(PrepareContext& context)
      : GruKernel<T>(context, /*transposes_weights=*/true),
        rows_(context.Input("Input").shape[0]),
        weight_rows_(context.HasOutput("Weight@GRAD") ? rows_ : 0),
        weight_gradient_(context, size_, weight_rows_),
        hidden_(context.InputIndex("Hidden")),
        batch_gate_(context.InputIndex("BatchGate")),
        hidden_grad_(context.InputIndex("Hidden@GRAD")),
        input_grad_(context.OutputIndex("Input@GRAD")),
        weight_grad_(context.OutputIndex("Weight@GRAD")),
        bias_grad_(context.OutputIndex("Bias@GRAD")),
        h0_grad_(context.OutputIndex("H0@GRAD")),
        zeros_(RequestNumbers<T>(context, 1, size_)),
        next_(RequestNumbers<T>(context, sequences_, size_)),
        reset_grad_(RequestNumbers<T>(context, sequences_, size_)),
        step_gates_(RequestNumbers<T>(context, sequences_, 3 * size_)),
        all_gates_(RequestNumbers<T>(context, input_grad_ < 0 ? rows_ : 0, 3 * size_)),
        before_(RequestNumbers<T>(context, weight_rows_, size_)),
        reset_(RequestNumbers<T>(context, weight_rows_, size_)) {}

  bool TakesFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    const TimeSteps steps = this->Steps(run);
    const Arguments arguments = ArgumentsOf(run);
    const int64_t rows = run.input(hidden_).shape()[0];
    std::fill_n(arguments.next, sequences_ * size_, T{0});
    steps.ForEachBackwards([&](const TimeSteps::Step& step) {
      ParallelFor(step.count, this->grain(), [&](int64_t begin, int64_t end) {
        for (int64_t j = begin; j < end; ++j) {
          GruBackward(cell_, Before(steps, step, arguments, j), Gates(step, arguments, j),
                      GradientOf(steps, step, arguments, j));
        }
      });
      weights_.candidate.Multiply(run, arguments.step_gates + 2 * size_, step.count, 3 * size_,
                                  false, arguments.reset_grad, size_);
      ParallelFor(step.count, this->grain(), [&](int64_t begin, int64_t end) {
        for (int64_t j = begin; j < end; ++j) FinishRow(steps, step, arguments, j);
      });
      if (step.time > 0 || h0_grad_ >= 0) {
        weights_.gates.Multiply(run, arguments.step_gates, step.count, 3 * size_, true,
                                arguments.next, size_);
      }
    });
    if (h0_grad_ >= 0) {
      steps.FromLongestFirst<T>(arguments.next, size_, run.output(h0_grad_).template data<T>());
    }
    if (weight_grad_ >= 0) {
      weight_gradient_.Run(run, rows, arguments.before, arguments.reset, arguments.all_gates,
                           run.output(weight_grad_).template data<T>());
    }
    if (bias_grad_ >= 0) {
      AxisReduction({rows, 3 * size_}, {true, false})
          .Sum(arguments.all_gates, run.output(bias_grad_).template data<T>());
    }
  }

 private:
  struct Arguments {
    const T* zeros;
    const T* h0;
    const T* hidden;
    const T* batch_gate;
    const T* hidden_grad;
    // Of the longest sequence first: the gradient from later steps, that of the reset state, and
    // that of the gates in this step.
    T* next;
    T* reset_grad;
    T* step_gates;
    T* all_gates;  // in the order of the rows
    // Of each row, for the gradient of Weight.
    T* before;
    T* reset;
  };

  Arguments ArgumentsOf(const KernelContext& run) const {
    auto* zeros = static_cast<T*>(run.workspace(zeros_));
    std::fill_n(zeros, size_, T{0});
    return {.zeros = zeros,
            .h0 = h0_ < 0 ? nullptr : run.input(h0_).template data<T>(),
            .hidden = run.input(hidden_).template data<T>(),
            .batch_gate = run.input(batch_gate_).template data<T>(),
            .hidden_grad = run.input(hidden_grad_).template data<T>(),
            .next = static_cast<T*>(run.workspace(next_)),
            .reset_grad = static_cast<T*>(run.workspace(reset_grad_)),
            .step_gates = static_cast<T*>(run.workspace(step_gates_)),
            .all_gates = input_grad_ < 0 ? static_cast<T*>(run.workspace(all_gates_))
                                         : run.output(input_grad_).template data<T>(),
            .before = static_cast<T*>(run.workspace(before_)),
            .reset = static_cast<T*>(run.workspace(reset_))};
  }

  const T* Before(const TimeSteps& steps, const TimeSteps::Step& step, const Arguments& arguments,
                  int64_t j) const {
    return steps.StateBefore(j, step.time, arguments.hidden, arguments.h0, arguments.zeros, size_);
  }
  const T* Gates(const TimeSteps::Step& step, const Arguments& arguments, int64_t j) const {
    return arguments.batch_gate + (step.first + j) * 3 * size_;
  }
  GruStepGradient<T> GradientOf(const TimeSteps& steps, const TimeSteps::Step& step,
                                const Arguments& arguments, int64_t j) const {
    return {.hidden = arguments.hidden_grad + steps.Row(j, step.time) * size_,
            .before = arguments.next + j * size_,
            .gates = arguments.step_gates + j * 3 * size_};
  }

  // What remains of a time step of sequence j once the gradient of the reset state is known.
  void FinishRow(const TimeSteps& steps, const TimeSteps::Step& step, const Arguments& arguments,
                 int64_t j) const {
    const int64_t row = steps.Row(j, step.time);
    const T* before = Before(steps, step, arguments, j);
    const T* gates = Gates(step, arguments, j);
    const GruStepGradient<T> gradient = GradientOf(steps, step, arguments, j);
    GruResetBackward(cell_, before, gates, arguments.reset_grad + j * size_, gradient);
    std::copy_n(gradient.gates, 3 * size_, arguments.all_gates + row * 3 * size_);
    if (weight_grad_ < 0) return;
    std::copy_n(before, size_, arguments.before + row * size_);
    T* reset = arguments.reset + row * size_;
    for (int64_t i = 0; i < size_; ++i) reset[i] = gates[size_ + i] * before[i];
  }

  using GruKernel<T>::size_;
  using GruKernel<T>::sequences_;
  using GruKernel<T>::cell_;
  using GruKernel<T>::weights_;
  using GruKernel<T>::h0_;
  int64_t rows_;         // at most
  int64_t weight_rows_;  // that the gradient of Weight is summed over, if it is wanted
  GruWeightGradient<T> weight_gradient_;
  int hidden_;
  int batch_gate_;
  int hidden_grad_;
  int input_grad_;
  int weight_grad_;
  int bias_grad_;
  int h0_grad_;
  // Workspaces.
  int zeros_;
  int next_;
  int reset_grad_;
  int step_gates_;
  int all_gates_;
  int before_;
  int reset_;
};

std::vector<AttrDef> Attributes() {
  return {ActivationAttr("activation", "tanh", "Of c."),
          ActivationAttr("gate_activation", "sigmoid", "Of u and r."),
          {.name = "is_reverse",
           .type = AttrType::kBool,
           .default_value = false,
           .doc = "Whether the last row of a sequence comes first."},
          {.name = "origin_mode",
           .type = AttrType::kBool,
           .default_value = false,
           .doc = "Whether u is the share of the old state, not of c."}};
}

void AddGrad(OpRegistry& registry, OpDef* forward) {
  OpDef def = GradientOf(forward,
                         {ForShape("Input"), "Weight", ForShape("Bias"), "H0", "Hidden",
                          "BatchGate", Optional(ForShape("BatchResetHiddenPrev")),
                          Optional(ForShape("BatchHidden")), "Hidden@GRAD"},
                         {"Input@GRAD", "Weight@GRAD", "Bias@GRAD", "H0@GRAD"});
  def.doc = "The gradients of the gated recurrent units.";
  def.infer = InferGrad;
  def.flop = GradFlop(Flop, {"Input@GRAD", "Weight@GRAD"});
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>("gru_grad", []<typename T>(PrepareContext& context) {
    return std::make_unique<GradKernel<T>>(context);
  });
}

}  // namespace

void RegisterGru(OpRegistry& registry) {
  OpDef def;
  def.type = "gru";
  def.doc = "Gated recurrent units over the rows of each sequence.";
  def.inputs = {{.name = "Input",
                 .doc = "Ragged, [rows, 3H]: for u, r and c, multiplied with the layer's weights."},
                {.name = "H0",
                 .doc = "[sequences, H]: the hidden state at the start; 0 if absent.",
                 .dispensable = true},
                {.name = "Weight",
                 .doc = "[H, 3H]: a matrix [H, 2H] of the hidden state for u and r, and after it "
                        "one [H, H] of the reset state for c."},
                {.name = "Bias", .doc = "[1, 3H]; 0 if absent.", .dispensable = true}};
  def.outputs = {{.name = "BatchGate",
                  .doc = "[rows, 3H]: u, r and c, in batch order.",
                  .dispensable = true,
                  .intermediate = true},
                 {.name = "BatchResetHiddenPrev",
                  .doc = "[rows, H]: the state before each row times r, in batch order.",
                  .dispensable = true,
                  .intermediate = true},
                 {.name = "BatchHidden",
                  .doc = "[rows, H]: Hidden in batch order.",
                  .dispensable = true,
                  .intermediate = true},
                 {.name = "Hidden", .doc = "[rows, H], ragged like Input."}};
  def.attrs = Attributes();
  def.infer = Infer;
  def.flop = Flop;
  AddGrad(registry, &def);
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>("gru", []<typename T>(PrepareContext& context) {
    return std::make_unique<ForwardKernel<T>>(context);
  });
}

}  // namespace skiff
