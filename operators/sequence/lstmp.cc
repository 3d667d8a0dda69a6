// lstmp: a long short-term memory with a recurrent projection over the rows of each sequence, in
// order or with is_reverse from the last row to the first. kernels/lstm_cell.h has the formula of a
// step, in which h' · Weight becomes r' · Weight: r', at first H0, is the projection of the step
// before,
//
//   r = proj_activation(h · ProjWeight), at most proj_clip from 0
//
// Input has been multiplied with the weights of the layer already. What is in batch order:
// kernels/time_steps.h.
//
// Source: Fluid's lstmp (dynamic_lstmp; Sak et al. 2014). Fluid 1.x projects with cell_activation
// whatever proj_activation says, and its gradients don't stop at cell_clip.
//
// The sequences run side by side. Gradient: the same from the last step to the first; those of the
// weights are products over all rows at the end.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/sequence/kernels/clipped_activation.h"
#include "operators/sequence/kernels/lstm_layer.h"
#include "operators/sequence/kernels/recurrent_weight.h"
#include "operators/sequence/kernels/row_sums.h"
#include "operators/sequence/kernels/rows_product.h"

namespace skiff {
namespace {

// H and P.
struct Sizes {
  int64_t cell = 0;
  int64_t projection = 0;
};

Sizes SizesOf(const OpContext& context) {
  const Shape& weight = context.Input("ProjWeight").shape;
  SKIFF_ENFORCE(weight.rank() == 2, kInvalidArgument, context.op().type, ": ProjWeight is ", weight,
                ", expected a matrix");
  return {weight[0], weight[1]};
}

// Checks the arguments that the op and its gradient have in common.
void CheckArguments(const OpContext& context) {
  const Sizes sizes = SizesOf(context);
  const int64_t gates = sizes.cell < 0 ? -1 : MultiplyCounts(sizes.cell, 4);
  const DType dtype = context.Input("ProjWeight").dtype;
  const int64_t sequences = SequenceCount(context, "Input");
  CheckInputLike(context, "Input", {-1, gates}, dtype);
  CheckInputLike(context, "Weight", {sizes.projection, gates}, dtype);
  CheckInputLike(context, "Bias", {1, LstmBiasWidth(context, sizes.cell)}, dtype);
  if (context.HasInput("H0")) CheckInputLike(context, "H0", {sequences, sizes.projection}, dtype);
  if (context.HasInput("C0")) CheckInputLike(context, "C0", {sequences, sizes.cell}, dtype);
}

void Infer(OpContext& context) {
  CheckArguments(context);
  const TensorMeta& input = context.Input("Input");
  const Sizes sizes = SizesOf(context);
  const int64_t rows = input.shape[0];
  context.SetOutput("Projection", {rows, sizes.projection}, input.dtype);
  context.SetOutput("Cell", {rows, sizes.cell}, input.dtype);
  for (const char* slot : {"Projection", "Cell"}) context.ShareLoD(slot, "Input");
  context.SetOutput("BatchGate", input.shape, input.dtype);
  context.SetOutput("BatchCellPreAct", {rows, sizes.cell}, input.dtype);
  context.SetOutput("BatchHidden", {rows, sizes.cell}, input.dtype);
  // Where programs have this output, H0 is a hidden state, which the op projects.
  SKIFF_ENFORCE(!context.HasOutput("OrderedP0") || !context.HasInput("H0"), kUnimplemented,
                "lstmp: H0 and OrderedP0, as in programs before Fluid 1.5, which give a hidden "
                "state for H0; expected the projection of one, and no OrderedP0");
  context.SetOutput("OrderedP0", {SequenceCount(context, "Input"), sizes.projection}, input.dtype);
}

void InferGrad(OpContext& context) {
  CheckArguments(context);
  const Sizes sizes = SizesOf(context);
  const TensorMeta& input = context.Input("Input");
  const int64_t rows = input.shape[0];
  for (const char* slot : {"Projection", "Projection@GRAD"})
    CheckInputLike(context, slot, {rows, sizes.projection}, input.dtype);
  for (const char* slot : {"Cell", "BatchCellPreAct", "BatchHidden", "Cell@GRAD"}) {
    if (context.HasInput(slot)) CheckInputLike(context, slot, {rows, sizes.cell}, input.dtype);
  }
  CheckInputLike(context, "BatchGate", input.shape, input.dtype);
  for (const std::string slot : {"Input", "Weight", "ProjWeight", "Bias", "H0", "C0"}) {
    if (context.HasInput(slot)) context.SetOutputLike(slot + "@GRAD", slot);
  }
}

double Flop(const OpContext& context) {
  double weights = 0;
  for (const char* slot : {"Weight", "ProjWeight"}) {
    const Shape& weight = context.Input(slot).shape;
    weights += static_cast<double>(weight[0]) * static_cast<double>(weight[1]);
  }
  return 2.0 * static_cast<double>(context.Input("Input").shape[0]) * weights;
}

// What the kernels of the op and of its gradient have in common.
template <typename T>
class LstmpKernel : public Kernel {
 public:
  bool TakesFewerRows() const override { return true; }

 protected:
  LstmpKernel(PrepareContext& context, bool is_gradient)
      : size_(SizesOf(context).cell),
        width_(SizesOf(context).projection),
        max_rows_(context.Input("Input").shape[0]),
        max_sequences_(SequenceCount(context, "Input")),
        has_peepholes_(HasPeepholes(context)),
        is_reverse_(context.Attr<bool>("is_reverse")),
        cell_(LstmCellOf<T>(context, size_)),
        projection_{ActivationOf(context, "proj_activation"),
                    static_cast<T>(context.Attr<float>("proj_clip"))},
        weight_(context, context.InputIndex("Weight"), {0, width_, 4 * size_}, is_gradient),
        proj_weight_(context, context.InputIndex("ProjWeight"), {0, size_, width_}, is_gradient),
        input_(context.InputIndex("Input")),
        bias_(context.InputIndex("Bias")),
        h0_(context.InputIndex("H0")),
        c0_(context.InputIndex("C0")),
        order_(RequestNumbers<int64_t>(context, max_sequences_, 1)),
        zeros_(RequestNumbers<T>(context, 1, std::max(size_, width_))) {
    cell_.cell_clip = static_cast<T>(context.Attr<float>("cell_clip"));
  }

  int64_t Sequences(const KernelContext& run) const {
    return SequenceRows(run.input(input_)).size();
  }
  TimeSteps Steps(const KernelContext& run) const {
    return TimeSteps(SequenceRows(run.input(input_)), is_reverse_,
                     static_cast<int64_t*>(run.workspace(order_)));
  }
  LstmCell<T> Cell(const KernelContext& run) const {
    return WithBias(cell_, run.input(bias_).template data<T>(), has_peepholes_);
  }
  const T* Input(const KernelContext& run, int input) const {
    return input < 0 ? nullptr : run.input(input).template data<T>();
  }
  T* Workspace(const KernelContext& run, int workspace) const {
    return static_cast<T*>(run.workspace(workspace));
  }
  // Returns a row of zeros.
  const T* Zeros(const KernelContext& run) const {
    T* zeros = Workspace(run, zeros_);
    std::fill_n(zeros, std::max(size_, width_), T{0});
    return zeros;
  }
  int64_t grain() const { return RecurrentGrain(4 * size_); }

  int64_t size_;   // H
  int64_t width_;  // P
  int64_t max_rows_;
  int64_t max_sequences_;
  bool has_peepholes_;
  bool is_reverse_;
  LstmCell<T> cell_;
  ClippedActivation<T> projection_;
  RecurrentWeight<T> weight_;
  RecurrentWeight<T> proj_weight_;
  int input_;
  int bias_;
  int h0_;
  int c0_;
  // Workspaces.
  int order_;
  int zeros_;
};

template <typename T>
class ForwardKernel final : public LstmpKernel<T> {
 public:
  explicit ForwardKernel(PrepareContext& context)
      : LstmpKernel<T>(context, /*is_gradient=*/false),
        projection_out_(context.OutputIndex("Projection")),
        cell_out_(context.OutputIndex("Cell")),
        batch_gate_(context.OutputIndex("BatchGate")),
        batch_activated_(context.OutputIndex("BatchCellPreAct")),
        batch_hidden_(context.OutputIndex("BatchHidden")),
        ordered_(context.OutputIndex("OrderedP0")),
        states_(RequestNumbers<T>(context, max_sequences_, width_)),
        gates_(RequestNumbers<T>(context, batch_gate_ < 0 ? max_sequences_ : 0, 4 * size_)),
        activated_(RequestNumbers<T>(context, batch_activated_ < 0 ? max_sequences_ : 0, size_)),
        hidden_(RequestNumbers<T>(context, batch_hidden_ < 0 ? max_sequences_ : 0, size_)) {}

  void Run(const KernelContext& run) override {
    const TimeSteps steps = this->Steps(run);
    const T* h0 = this->Input(run, this->h0_);
    // The projections of the sequences in this time step, of the longest sequence first.
    T* states = this->Workspace(run, states_);
    const Arguments arguments{.lstm = this->Cell(run),
                              .input = this->Input(run, this->input_),
                              .c0 = this->Input(run, this->c0_),
                              .zeros = this->Zeros(run),
                              .cell = run.output(cell_out_).template data<T>(),
                              .projection = run.output(projection_out_).template data<T>(),
                              .states = states};
    if (h0 != nullptr) steps.ToLongestFirst(h0, width_, states);
    steps.ForEach([&](const TimeSteps::Step& step) { RunStep(run, steps, step, arguments); });
    if (ordered_ < 0) return;
    Tensor& ordered = run.output(ordered_);
    std::fill_n(ordered.data<T>(), ordered.element_count(), T{0});
  }

 private:
  struct Arguments {
    LstmCell<T> lstm;
    const T* input;
    const T* c0;
    const T* zeros;
    T* cell;
    T* projection;
    T* states;
  };

  void RunStep(const KernelContext& run, const TimeSteps& steps, const TimeSteps::Step& step,
               const Arguments& arguments) const {
    T* gates = StepRows<T>(run, batch_gate_, gates_, step, 4 * size_);
    T* activated = StepRows<T>(run, batch_activated_, activated_, step, size_);
    T* hidden = StepRows<T>(run, batch_hidden_, hidden_, step, size_);
    T* states = arguments.states;
    if (step.time > 0 || this->h0_ >= 0) {
      this->weight_.Multiply(run, states, step.count, width_, false, gates, 4 * size_);
    } else {
      std::fill_n(gates, step.count * 4 * size_, T{0});
    }
    ParallelFor(step.count, this->grain(), [&](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j) {
        const int64_t row = steps.Row(j, step.time);
        LstmForward(
            arguments.lstm, arguments.input + row * 4 * size_,
            {.cell_before = steps.StateBefore(j, step.time, static_cast<const T*>(arguments.cell),
                                              arguments.c0, arguments.zeros, size_),
             .gates = gates + j * 4 * size_,
             .cell = arguments.cell + row * size_,
             .activated_cell = activated + j * size_},
            hidden + j * size_);
      }
    });
    this->proj_weight_.Multiply(run, hidden, step.count, size_, false, states, width_);
    ParallelFor(step.count, RecurrentGrain(width_), [&](int64_t begin, int64_t end) {
      Activate(this->projection_, states + begin * width_, (end - begin) * width_);
      for (int64_t j = begin; j < end; ++j) {
        std::copy_n(states + j * width_, width_,
                    arguments.projection + steps.Row(j, step.time) * width_);
      }
    });
  }

  using LstmpKernel<T>::size_;
  using LstmpKernel<T>::width_;
  using LstmpKernel<T>::max_sequences_;
  int projection_out_;
  int cell_out_;
  int batch_gate_;
  int batch_activated_;
  int batch_hidden_;
  int ordered_;
  // Workspaces.
  int states_;
  int gates_;
  int activated_;
  int hidden_;
};

template <typename T>
class GradKernel final : public LstmpKernel<T> {
 public:
  explicit GradKernel(PrepareContext& context)
      : LstmpKernel<T>(context, /*is_gradient=*/true),
        projection_in_(context.InputIndex("Projection")),
        cell_in_(context.InputIndex("Cell")),
        batch_gate_(context.InputIndex("BatchGate")),
        batch_activated_(context.InputIndex("BatchCellPreAct")),
        batch_hidden_(context.InputIndex("BatchHidden")),
        projection_grad_(context.InputIndex("Projection@GRAD")),
        cell_grad_(context.InputIndex("Cell@GRAD")),
        input_grad_(context.OutputIndex("Input@GRAD")),
        weight_grad_(context.OutputIndex("Weight@GRAD")),
        proj_weight_grad_(context.OutputIndex("ProjWeight@GRAD")),
        bias_grad_(context.OutputIndex("Bias@GRAD")),
        h0_grad_(context.OutputIndex("H0@GRAD")),
        c0_grad_(context.OutputIndex("C0@GRAD")),
        weight_product_(context, weight_grad_ < 0 ? 0 : max_rows_, 4 * size_),
        proj_weight_product_(context, proj_weight_grad_ < 0 ? 0 : max_rows_, width_),
        next_projection_(RequestNumbers<T>(context, max_sequences_, width_)),
        next_cell_(RequestNumbers<T>(context, max_sequences_, size_)),
        hidden_(RequestNumbers<T>(context, max_sequences_, size_)),
        gates_rows_(RequestNumbers<T>(context, max_rows_, 4 * size_)),
        projection_rows_(RequestNumbers<T>(context, max_rows_, width_)),
        before_pointers_(context.RequestWorkspace(
            MultiplyCounts(max_rows_, static_cast<int64_t>(sizeof(const T*))))) {}

  void Run(const KernelContext& run) override {
    const TimeSteps steps = this->Steps(run);
    const Arguments arguments = ArgumentsOf(run);
    const int64_t sequences = this->Sequences(run);
    std::fill_n(arguments.next_projection, sequences * width_, T{0});
    std::fill_n(arguments.next_cell, sequences * size_, T{0});
    steps.ForEachBackwards(
        [&](const TimeSteps::Step& step) { RunStep(run, steps, step, arguments); });
    if (h0_grad_ >= 0) {
      steps.FromLongestFirst<T>(arguments.next_projection, width_,
                                run.output(h0_grad_).template data<T>());
    }
    if (c0_grad_ >= 0) {
      steps.FromLongestFirst<T>(arguments.next_cell, size_,
                                run.output(c0_grad_).template data<T>());
    }
    WriteWeightGradients(run, steps, arguments);
  }

 private:
  struct Arguments {
    LstmCell<T> lstm;
    const T* zeros;
    const T* h0;
    const T* c0;
    const T* projection;
    const T* cell;
    const T* batch_gate;
    const T* batch_activated;
    const T* projection_grad;
    const T* cell_grad;
    // Of the longest sequence first: gradients from later steps, and that of the hidden state in
    // this one.
    T* next_projection;
    T* next_cell;
    T* hidden;
    // In batch order: the gradients of the gates and of h · ProjWeight, and the projection before.
    T* gates_rows;
    T* projection_rows;
    const T** before_pointers;
    T* input_grad;
  };

  Arguments ArgumentsOf(const KernelContext& run) const {
    return {.lstm = this->Cell(run),
            .zeros = this->Zeros(run),
            .h0 = this->Input(run, this->h0_),
            .c0 = this->Input(run, this->c0_),
            .projection = this->Input(run, projection_in_),
            .cell = this->Input(run, cell_in_),
            .batch_gate = this->Input(run, batch_gate_),
            .batch_activated = this->Input(run, batch_activated_),
            .projection_grad = this->Input(run, projection_grad_),
            .cell_grad = this->Input(run, cell_grad_),
            .next_projection = this->Workspace(run, next_projection_),
            .next_cell = this->Workspace(run, next_cell_),
            .hidden = this->Workspace(run, hidden_),
            .gates_rows = this->Workspace(run, gates_rows_),
            .projection_rows = this->Workspace(run, projection_rows_),
            .before_pointers = static_cast<const T**>(run.workspace(before_pointers_)),
            .input_grad = input_grad_ < 0 ? nullptr : run.output(input_grad_).template data<T>()};
  }

  void RunStep(const KernelContext& run, const TimeSteps& steps, const TimeSteps::Step& step,
               const Arguments& arguments) const {
    T* projections = arguments.projection_rows + step.first * width_;
    ParallelFor(step.count, RecurrentGrain(width_), [&](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j) {
        const int64_t row = steps.Row(j, step.time);
        T* gradient = projections + j * width_;
        for (int64_t i = 0; i < width_; ++i) {
          gradient[i] = arguments.projection_grad[row * width_ + i] +
                        arguments.next_projection[j * width_ + i];
        }
        MultiplyByDerivative(this->projection_, arguments.projection + row * width_, gradient,
                             width_);
      }
    });
    this->proj_weight_.Multiply(run, projections, step.count, width_, false, arguments.hidden,
                                size_);
    ParallelFor(step.count, this->grain(), [&](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j) RunRow(steps, step, arguments, j);
    });
    if (step.time == 0 && h0_grad_ < 0) return;
    this->weight_.Multiply(run, arguments.gates_rows + step.first * 4 * size_, step.count,
                           4 * size_, false, arguments.next_projection, width_);
  }

  const T* CellBefore(const TimeSteps& steps, const TimeSteps::Step& step,
                      const Arguments& arguments, int64_t j) const {
    return steps.StateBefore(j, step.time, arguments.cell, arguments.c0, arguments.zeros, size_);
  }

  // The gradient of a time step of sequence j.
  void RunRow(const TimeSteps& steps, const TimeSteps::Step& step, const Arguments& arguments,
              int64_t j) const {
    const int64_t row = steps.Row(j, step.time);
    const int64_t batch_row = step.first + j;
    T* gates = arguments.gates_rows + batch_row * 4 * size_;
    LstmBackward(
        arguments.lstm,
        LstmStep<const T>{.cell_before = CellBefore(steps, step, arguments, j),
                          .gates = arguments.batch_gate + batch_row * 4 * size_,
                          .cell = arguments.cell + row * size_,
                          .activated_cell = arguments.batch_activated + batch_row * size_},
        LstmStepGradient<T>{
            .hidden = arguments.hidden + j * size_,
            .cell = arguments.cell_grad == nullptr ? nullptr : arguments.cell_grad + row * size_,
            .next_hidden = arguments.zeros,
            .next_cell = arguments.next_cell + j * size_,
            .gates = gates});
    if (arguments.input_grad != nullptr)
      std::copy_n(gates, 4 * size_, arguments.input_grad + row * 4 * size_);
    arguments.before_pointers[batch_row] = steps.StateBefore(j, step.time, arguments.projection,
                                                             arguments.h0, arguments.zeros, width_);
  }

  void WriteWeightGradients(const KernelContext& run, const TimeSteps& steps,
                            const Arguments& arguments) const {
    const int64_t rows = run.input(batch_gate_).shape()[0];
    const MatrixRows<T> gates{.first = arguments.gates_rows, .stride = 4 * size_};
    if (weight_grad_ >= 0) {
      weight_product_.Pack(run, gates, rows);
      weight_product_.Multiply(run, {.each = arguments.before_pointers}, width_, rows,
                               run.output(weight_grad_).template data<T>());
    }
    if (proj_weight_grad_ >= 0) {
      proj_weight_product_.Pack(run, {.first = arguments.projection_rows, .stride = width_}, rows);
      proj_weight_product_.Multiply(run,
                                    {.first = this->Input(run, batch_hidden_), .stride = size_},
                                    size_, rows, run.output(proj_weight_grad_).template data<T>());
    }
    if (bias_grad_ < 0) return;
    T* bias_grad = run.output(bias_grad_).template data<T>();
    SumRows(arguments.gates_rows, rows, 4 * size_, 4 * size_, bias_grad);
    if (!this->has_peepholes_) return;
    const auto row_of = [&](const TimeSteps::Step& step, int64_t j) {
      return PeepholeRow<T>{.before = CellBefore(steps, step, arguments, j),
                            .cell = arguments.cell + steps.Row(j, step.time) * size_,
                            .gates_gradient = arguments.gates_rows + (step.first + j) * 4 * size_};
    };
    SumPeepholes(steps, size_, row_of, bias_grad + 4 * size_);
  }

  using LstmpKernel<T>::size_;
  using LstmpKernel<T>::width_;
  using LstmpKernel<T>::max_rows_;
  using LstmpKernel<T>::max_sequences_;
  int projection_in_;
  int cell_in_;
  int batch_gate_;
  int batch_activated_;
  int batch_hidden_;
  int projection_grad_;
  int cell_grad_;
  int input_grad_;
  int weight_grad_;
  int proj_weight_grad_;
  int bias_grad_;
  int h0_grad_;
  int c0_grad_;
  RowsProduct<T> weight_product_;
  RowsProduct<T> proj_weight_product_;
  // Workspaces.
  int next_projection_;
  int next_cell_;
  int hidden_;
  int gates_rows_;
  int projection_rows_;
  int before_pointers_;
};

std::vector<AttrDef> Attributes() {
  std::vector<AttrDef> attrs = LstmAttributes();
  const auto is_limit = [](const Attribute& value) { return std::get<float>(value) >= 0.0f; };
  attrs.insert(attrs.end(), {ActivationAttr("proj_activation", "tanh", "Of the projection."),
                             {.name = "cell_clip",
                              .type = AttrType::kFloat,
                              .default_value = 0.0f,
                              .doc = "The largest magnitude of the cell; 0: no limit.",
                              .accepts = is_limit,
                              .expected = "at least 0"},
                             {.name = "proj_clip",
                              .type = AttrType::kFloat,
                              .default_value = 0.0f,
                              .doc = "The largest magnitude of the projection; 0: no limit.",
                              .accepts = is_limit,
                              .expected = "at least 0"}});
  return attrs;
}

void AddGrad(OpRegistry& registry, OpDef* forward) {
  OpDef def = GradientOf(
      forward,
      {ForShape("Input"), "Weight", "ProjWeight", "Bias", "H0", "C0", "Projection", "Cell",
       "BatchGate", "BatchCellPreAct", "BatchHidden", "Projection@GRAD", Optional("Cell@GRAD")},
      {"Input@GRAD", "Weight@GRAD", "ProjWeight@GRAD", "Bias@GRAD", "H0@GRAD", "C0@GRAD"});
  def.doc = "The gradients of the long short-term memory with a projection.";
  def.infer = InferGrad;
  def.flop = GradFlop(Flop, {"Input@GRAD", "Weight@GRAD"});
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>("lstmp_grad", []<typename T>(PrepareContext& context) {
    return std::make_unique<GradKernel<T>>(context);
  });
}

}  // namespace

void RegisterLstmp(OpRegistry& registry) {
  OpDef def;
  def.type = "lstmp";
  def.doc = "A long short-term memory with a recurrent projection over the rows of each sequence.";
  def.inputs = {
      {.name = "Input",
       .doc = "Ragged, [rows, 4H]: for c~, i, f and o, multiplied with the layer's weights."},
      {.name = "H0",
       .doc = "[sequences, P]: the projection at the start; 0 if absent.",
       .dispensable = true},
      {.name = "C0",
       .doc = "[sequences, H]: the cell at the start; 0 if absent.",
       .dispensable = true},
      {.name = "Weight", .doc = "[P, 4H]: of the projection, for c~, i, f and o."},
      {.name = "ProjWeight", .doc = "[H, P]: of the hidden state, for the projection."},
      {.name = "Bias", .doc = "[1, 4H]; with use_peepholes [1, 7H], then w_i, w_f and w_o."}};
  def.outputs = {{.name = "Projection", .doc = "[rows, P], ragged like Input."},
                 {.name = "Cell", .doc = "[rows, H], ragged like Input."},
                 {.name = "BatchGate",
                  .doc = "[rows, 4H]: c~, i, f and o, in batch order.",
                  .dispensable = true,
                  .intermediate = true},
                 {.name = "BatchCellPreAct",
                  .doc = "[rows, H]: the cell after cell_activation, in batch order.",
                  .dispensable = true,
                  .intermediate = true},
                 {.name = "BatchHidden",
                  .doc = "[rows, H]: the hidden state, in batch order.",
                  .dispensable = true,
                  .intermediate = true},
                 {.name = "OrderedP0",
                  .doc = "[sequences, P]: 0. Programs before Fluid 1.5 have it.",
                  .dispensable = true,
                  .intermediate = true}};
  def.attrs = Attributes();
  def.infer = Infer;
  def.flop = Flop;
  AddGrad(registry, &def);
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>("lstmp", []<typename T>(PrepareContext& context) {
    return std::make_unique<ForwardKernel<T>>(context);
  });
}

}  // namespace skiff
