// lstm: a long short-term memory over the rows of each sequence, in order or with is_reverse from
// the last row to the first. kernels/lstm_cell.h has the formula of a step. Input has been
// multiplied with the weights of the layer already; Weight multiplies the hidden state.
//
//   Bias             b_c b_i b_f b_o and, with use_peepholes, w_i w_f w_o
//   BatchGate        c~ i f o of each row, in batch order (kernels/time_steps.h)
//   BatchCellPreAct  cell(c) of each row, in batch order
//
// Source: Fluid's lstm (dynamic_lstm).
//
// The sequences run side by side: each time step is one product of the states of all sequences that
// have a row in it. Gradient: the same from the last step to the first; that of Weight is one
// product over all rows at the end. Fluid's lstm_grad ignores the gradient of Cell; this one adds
// it.
#include <algorithm>
#include <string>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/gemm.h"
#include "operators/common/input_checks.h"
#include "operators/common/reduce.h"
#include "operators/sequence/kernels/lstm_layer.h"
#include "operators/sequence/kernels/recurrent_weight.h"
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
  const int64_t gates = size < 0 ? -1 : MultiplyCounts(size, 4);
  const DType dtype = context.Input("Input").dtype;
  const int64_t sequences = SequenceCount(context, "Input");
  CheckInputLike(context, "Input", {-1, gates}, dtype);
  CheckInputLike(context, "Weight", {size, gates}, dtype);
  CheckInputLike(context, "Bias", {1, LstmBiasWidth(context, size)}, dtype);
  for (const char* slot : {"H0", "C0"}) {
    if (context.HasInput(slot)) CheckInputLike(context, slot, {sequences, size}, dtype);
  }
}

void Infer(OpContext& context) {
  CheckArguments(context);
  const TensorMeta& input = context.Input("Input");
  const int64_t rows = input.shape[0];
  const int64_t size = SizeOf(context);
  for (const char* slot : {"Hidden", "Cell"}) {
    context.SetOutput(slot, {rows, size}, input.dtype);
    context.ShareLoD(slot, "Input");
  }
  context.SetOutput("BatchGate", {rows, input.shape[1]}, input.dtype);
  context.SetOutput("BatchCellPreAct", {rows, size}, input.dtype);
}

void InferGrad(OpContext& context) {
  CheckArguments(context);
  const TensorMeta& input = context.Input("Input");
  const Shape states = {input.shape[0], SizeOf(context)};
  for (const char* slot : {"Hidden", "Cell", "BatchCellPreAct", "Hidden@GRAD", "Cell@GRAD"}) {
    if (context.HasInput(slot)) CheckInputLike(context, slot, states, input.dtype);
  }
  CheckInputLike(context, "BatchGate", input.shape, input.dtype);
  for (const std::string slot : {"Input", "Weight", "Bias", "H0", "C0"}) {
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
class LstmKernel : public Kernel {
 protected:
  explicit LstmKernel(PrepareContext& context)
      : size_(SizeOf(context)),
        sequences_(SequenceCount(context, "Input")),
        has_peepholes_(HasPeepholes(context)),
        is_reverse_(context.Attr<bool>("is_reverse")),
        cell_(LstmCellOf<T>(context, size_)),
        input_(context.InputIndex("Input")),
        bias_(context.InputIndex("Bias")),
        h0_(context.InputIndex("H0")),
        c0_(context.InputIndex("C0")),
        order_(RequestNumbers<int64_t>(context, sequences_, 1)),
        zeros_(RequestNumbers<T>(context, 1, size_)) {}

  // Takes the sequences of the run, no more than those that the kernel was prepared for.
  TimeSteps Steps(const KernelContext& run) {
    const SequenceRows sequences(run.input(input_));
    sequences_ = sequences.size();
    return TimeSteps(sequences, is_reverse_, static_cast<int64_t*>(run.workspace(order_)));
  }
  LstmCell<T> Cell(const KernelContext& run) const {
    return WithBias(cell_, run.input(bias_).data<T>(), has_peepholes_);
  }
  // Returns a row of zeros.
  const T* Zeros(const KernelContext& run) const {
    auto* zeros = static_cast<T*>(run.workspace(zeros_));
    std::fill_n(zeros, size_, T{0});
    return zeros;
  }
  int64_t grain() const { return RecurrentGrain(4 * size_); }

  int64_t size_;
  int64_t sequences_;
  bool has_peepholes_;
  bool is_reverse_;
  LstmCell<T> cell_;
  int input_;
  int bias_;
  int h0_;
  int c0_;
  int order_;
  int zeros_;
};

template <typename T>
class ForwardKernel final : public LstmKernel<T> {
 public:
  explicit ForwardKernel(PrepareContext& context)
      : LstmKernel<T>(context),
        weight_(context, context.InputIndex("Weight"), {0, size_, 4 * size_}, false),
        hidden_(context.OutputIndex("Hidden")),
        cell_out_(context.OutputIndex("Cell")),
        batch_gate_(context.OutputIndex("BatchGate")),
        batch_activated_(context.OutputIndex("BatchCellPreAct")),
        states_(RequestNumbers<T>(context, sequences_, size_)),
        gates_(RequestNumbers<T>(context, batch_gate_ < 0 ? sequences_ : 0, 4 * size_)) {}

  bool TakesFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    const TimeSteps steps = this->Steps(run);
    const LstmCell<T> lstm = this->Cell(run);
    const T* zeros = this->Zeros(run);
    const T* input = run.input(input_).template data<T>();
    const T* h0 = h0_ < 0 ? nullptr : run.input(h0_).template data<T>();
    const T* c0 = c0_ < 0 ? nullptr : run.input(c0_).template data<T>();
    T* hidden = run.output(hidden_).template data<T>();
    T* cell = run.output(cell_out_).template data<T>();
    T* batch_activated =
        batch_activated_ < 0 ? nullptr : run.output(batch_activated_).template data<T>();
    // The hidden states of the sequences in this time step, of the longest sequence first.
    auto* states = static_cast<T*>(run.workspace(states_));
    if (h0 != nullptr) steps.ToLongestFirst(h0, size_, states);
    steps.ForEach([&](const TimeSteps::Step& step) {
      T* gates = StepRows<T>(run, batch_gate_, gates_, step, 4 * size_);
      if (step.time > 0 || h0 != nullptr) {
        weight_.Multiply(run, states, step.count, size_, false, gates, 4 * size_);
      } else {
        std::fill_n(gates, step.count * 4 * size_, T{0});
      }
      ParallelFor(step.count, this->grain(), [&](int64_t begin, int64_t end) {
        for (int64_t j = begin; j < end; ++j) {
          const int64_t row = steps.Row(j, step.time);
          T* row_hidden = hidden + row * size_;
          LstmForward(lstm, input + row * 4 * size_,
                      {.cell_before = steps.StateBefore(j, step.time, cell, c0, zeros, size_),
                       .gates = gates + j * 4 * size_,
                       .cell = cell + row * size_,
                       .activated_cell = batch_activated == nullptr
                                             ? row_hidden
                                             : batch_activated + (step.first + j) * size_},
                      row_hidden);
          std::copy_n(row_hidden, size_, states + j * size_);
        }
      });
    });
  }

 private:
  using LstmKernel<T>::size_;
  using LstmKernel<T>::sequences_;
  using LstmKernel<T>::input_;
  using LstmKernel<T>::h0_;
  using LstmKernel<T>::c0_;
  RecurrentWeight<T> weight_;
  int hidden_;
  int cell_out_;
  int batch_gate_;
  int batch_activated_;
  int states_;
  int gates_;
};

template <typename T>
class GradKernel final : public LstmKernel<T> {
 public:
  explicit GradKernel(PrepareContext& context)
      : LstmKernel<T>(context),
        rows_(context.Input("Input").shape[0]),
        weight_(context, context.InputIndex("Weight"), {0, size_, 4 * size_}, true),
        weight_gradient_(WeightProduct(context.HasOutput("Weight@GRAD") ? rows_ : 0), context),
        hidden_(context.InputIndex("Hidden")),
        cell_in_(context.InputIndex("Cell")),
        batch_gate_(context.InputIndex("BatchGate")),
        batch_activated_(context.InputIndex("BatchCellPreAct")),
        hidden_grad_(context.InputIndex("Hidden@GRAD")),
        cell_grad_(context.InputIndex("Cell@GRAD")),
        input_grad_(context.OutputIndex("Input@GRAD")),
        weight_grad_(context.OutputIndex("Weight@GRAD")),
        bias_grad_(context.OutputIndex("Bias@GRAD")),
        h0_grad_(context.OutputIndex("H0@GRAD")),
        c0_grad_(context.OutputIndex("C0@GRAD")),
        next_hidden_(RequestNumbers<T>(context, sequences_, size_)),
        next_cell_(RequestNumbers<T>(context, sequences_, size_)),
        step_gates_(RequestNumbers<T>(context, sequences_, 4 * size_)),
        all_gates_(RequestNumbers<T>(context, input_grad_ < 0 ? rows_ : 0, 4 * size_)),
        hidden_before_(RequestNumbers<T>(context, weight_grad_ < 0 ? 0 : rows_, size_)) {}

  bool TakesFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    const TimeSteps steps = this->Steps(run);
    const Arguments arguments = ArgumentsOf(run);
    const int64_t rows = run.input(hidden_).shape()[0];
    std::fill_n(arguments.next_hidden, sequences_ * size_, T{0});
    std::fill_n(arguments.next_cell, sequences_ * size_, T{0});
    steps.ForEachBackwards([&](const TimeSteps::Step& step) {
      ParallelFor(step.count, this->grain(), [&](int64_t begin, int64_t end) {
        for (int64_t j = begin; j < end; ++j) RunRow(steps, step, arguments, j);
      });
      if (step.time > 0 || h0_grad_ >= 0) {
        weight_.Multiply(run, arguments.step_gates, step.count, 4 * size_, false,
                         arguments.next_hidden, size_);
      }
    });
    if (h0_grad_ >= 0) {
      steps.FromLongestFirst<T>(arguments.next_hidden, size_,
                                run.output(h0_grad_).template data<T>());
    }
    if (c0_grad_ >= 0) {
      steps.FromLongestFirst<T>(arguments.next_cell, size_,
                                run.output(c0_grad_).template data<T>());
    }
    if (weight_grad_ >= 0) {
      weight_gradient_.Run(run, WeightProduct(rows), arguments.hidden_before, arguments.all_gates,
                           run.output(weight_grad_).template data<T>());
    }
    if (bias_grad_ < 0) return;
    T* bias_grad = run.output(bias_grad_).template data<T>();
    AxisReduction({rows, 4 * size_}, {true, false}).Sum(arguments.all_gates, bias_grad);
    if (!has_peepholes_) return;
    const auto row_of = [&](const TimeSteps::Step& step, int64_t j) {
      const int64_t row = steps.Row(j, step.time);
      return PeepholeRow<T>{.before = steps.StateBefore(j, step.time, arguments.cell, arguments.c0,
                                                        arguments.zeros, size_),
                            .cell = arguments.cell + row * size_,
                            .gates_gradient = arguments.all_gates + row * 4 * size_};
    };
    SumPeepholes(steps, size_, row_of, bias_grad + 4 * size_);
  }

 private:
  struct Arguments {
    LstmCell<T> lstm;
    const T* zeros;
    const T* h0;
    const T* c0;
    const T* hidden;
    const T* cell;
    const T* batch_gate;
    const T* batch_activated;
    const T* hidden_grad;
    const T* cell_grad;
    T* next_hidden;  // gradients from later steps, of the longest sequence first
    T* next_cell;
    T* step_gates;     // the gradient of the gates in this time step, in the same order
    T* all_gates;      // in the order of the rows
    T* hidden_before;  // of each row, for the gradient of Weight; else nullptr
  };

  GemmSpec WeightProduct(int64_t rows) const {
    return {.m = size_, .n = 4 * size_, .k = rows, .trans_a = true};
  }

  const T* Data(const KernelContext& run, int input) const {
    return input < 0 ? nullptr : run.input(input).template data<T>();
  }

  Arguments ArgumentsOf(const KernelContext& run) const {
    return {.lstm = this->Cell(run),
            .zeros = this->Zeros(run),
            .h0 = Data(run, h0_),
            .c0 = Data(run, c0_),
            .hidden = Data(run, hidden_),
            .cell = Data(run, cell_in_),
            .batch_gate = Data(run, batch_gate_),
            .batch_activated = Data(run, batch_activated_),
            .hidden_grad = Data(run, hidden_grad_),
            .cell_grad = Data(run, cell_grad_),
            .next_hidden = static_cast<T*>(run.workspace(next_hidden_)),
            .next_cell = static_cast<T*>(run.workspace(next_cell_)),
            .step_gates = static_cast<T*>(run.workspace(step_gates_)),
            .all_gates = input_grad_ < 0 ? static_cast<T*>(run.workspace(all_gates_))
                                         : run.output(input_grad_).template data<T>(),
            .hidden_before =
                weight_grad_ < 0 ? nullptr : static_cast<T*>(run.workspace(hidden_before_))};
  }

  // The gradient of a time step of sequence j.
  void RunRow(const TimeSteps& steps, const TimeSteps::Step& step, const Arguments& arguments,
              int64_t j) const {
    const int64_t row = steps.Row(j, step.time);
    const int64_t batch_row = step.first + j;
    T* gates = arguments.step_gates + j * 4 * size_;
    LstmBackward(
        arguments.lstm,
        LstmStep<const T>{.cell_before = steps.StateBefore(j, step.time, arguments.cell,
                                                           arguments.c0, arguments.zeros, size_),
                          .gates = arguments.batch_gate + batch_row * 4 * size_,
                          .cell = arguments.cell + row * size_,
                          .activated_cell = arguments.batch_activated + batch_row * size_},
        LstmStepGradient<T>{
            .hidden = arguments.hidden_grad + row * size_,
            .cell = arguments.cell_grad == nullptr ? nullptr : arguments.cell_grad + row * size_,
            .next_hidden = arguments.next_hidden + j * size_,
            .next_cell = arguments.next_cell + j * size_,
            .gates = gates});
    std::copy_n(gates, 4 * size_, arguments.all_gates + row * 4 * size_);
    if (arguments.hidden_before == nullptr) return;
    std::copy_n(
        steps.StateBefore(j, step.time, arguments.hidden, arguments.h0, arguments.zeros, size_),
        size_, arguments.hidden_before + row * size_);
  }

  using LstmKernel<T>::size_;
  using LstmKernel<T>::sequences_;
  using LstmKernel<T>::has_peepholes_;
  using LstmKernel<T>::h0_;
  using LstmKernel<T>::c0_;
  int64_t rows_;  // at most
  RecurrentWeight<T> weight_;
  Gemm<T> weight_gradient_;
  int hidden_;
  int cell_in_;
  int batch_gate_;
  int batch_activated_;
  int hidden_grad_;
  int cell_grad_;
  int input_grad_;
  int weight_grad_;
  int bias_grad_;
  int h0_grad_;
  int c0_grad_;
  // Workspaces.
  int next_hidden_;
  int next_cell_;
  int step_gates_;
  int all_gates_;
  int hidden_before_;
};

std::vector<AttrDef> Attributes() {
  std::vector<AttrDef> attrs = LstmAttributes();
  attrs.push_back({.name = "is_test",
                   .type = AttrType::kBool,
                   .default_value = false,
                   .doc = "No gradient will be wanted."});
  return attrs;
}

void AddGrad(OpRegistry& registry, OpDef* forward) {
  OpDef def = GradientOf(forward,
                         {ForShape("Input"), "Weight", "Bias", "H0", "C0", "Hidden", "Cell",
                          "BatchGate", "BatchCellPreAct", "Hidden@GRAD", Optional("Cell@GRAD")},
                         {"Input@GRAD", "Weight@GRAD", "Bias@GRAD", "H0@GRAD", "C0@GRAD"});
  def.doc = "The gradients of the long short-term memory.";
  def.infer = InferGrad;
  def.flop = GradFlop(Flop, {"Input@GRAD", "Weight@GRAD"});
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>("lstm_grad", []<typename T>(PrepareContext& context) {
    return std::make_unique<GradKernel<T>>(context);
  });
}

}  // namespace

void RegisterLstm(OpRegistry& registry) {
  OpDef def;
  def.type = "lstm";
  def.doc = "A long short-term memory over the rows of each sequence.";
  def.inputs = {
      {.name = "Input",
       .doc = "Ragged, [rows, 4H]: for c~, i, f and o, multiplied with the layer's weights."},
      {.name = "H0",
       .doc = "[sequences, H]: the hidden state at the start; 0 if absent.",
       .dispensable = true},
      {.name = "C0",
       .doc = "[sequences, H]: the cell at the start; 0 if absent.",
       .dispensable = true},
      {.name = "Weight", .doc = "[H, 4H]: of the hidden state, for c~, i, f and o."},
      {.name = "Bias", .doc = "[1, 4H]; with use_peepholes [1, 7H], then w_i, w_f and w_o."}};
  def.outputs = {{.name = "Hidden", .doc = "[rows, H], ragged like Input."},
                 {.name = "Cell", .doc = "[rows, H], ragged like Input."},
                 {.name = "BatchGate",
                  .doc = "[rows, 4H]: c~, i, f and o, in batch order.",
                  .dispensable = true,
                  .intermediate = true},
                 {.name = "BatchCellPreAct",
                  .doc = "[rows, H]: the cell after cell_activation, in batch order.",
                  .dispensable = true,
                  .intermediate = true}};
  def.attrs = Attributes();
  def.infer = Infer;
  def.flop = Flop;
  AddGrad(registry, &def);
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>("lstm", []<typename T>(PrepareContext& context) {
    return std::make_unique<ForwardKernel<T>>(context);
  });
}

}  // namespace skiff
