// rnn: layers of recurrent cells over padded sequences, each layer in one direction or, with
// is_bidirec, in both, whose hidden states side by side are the input of the next layer.
// kernels/rnn_cell.h and lstm_cell.h have the formulas of a step; g is the sum of the products of
// input and hidden state with the weights, and of two biases.
//
// A sequence has SequenceLength rows; then its states stay as they are and Out is 0. The backward
// direction begins with the last row of each. In training, elements of the hidden states between
// layers are dropped with dropout_prob and the others divided by 1 - dropout_prob.
//
// Source: PaddlePaddle 2.6's rnn, with the gates in the order of WeightList: i f c~ o, or r z c.
// PaddlePaddle drops the same elements after each layer; here each layer has its own.
//
// The rows of all sequences are computed in batch order (kernels/time_steps.h), without padding:
// the products with the input are one for all rows of a layer, and those with the hidden states one
// per time step. Gradient: the same from the last step to the first; those of weights are products
// over all rows at the end.
//
// Of half, everything but the products is float32, and what they read is rounded before.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/cpu/dropout_ranges.h"
#include "operators/common/input_checks.h"
#include "operators/sequence/kernels/column_sums.h"
#include "operators/sequence/kernels/padded_steps.h"
#include "operators/sequence/kernels/recurrent_weight.h"
#include "operators/sequence/kernels/rnn_cell.h"
#include "operators/sequence/kernels/rnn_layers.h"
#include "operators/sequence/kernels/rows_product.h"
#include "operators/sequence/kernels/wide_and_stored.h"
#include "operators/sequence/kernels/workspace.h"

namespace skiff {
namespace {

constexpr int64_t kDropoutGrain = 8192;  // elements, a multiple of the four words of a block

void Infer(OpContext& context) {
  CheckRnnArguments(context);
  const RnnSettings settings = RnnSettingsOf(context);
  const TensorMeta& input = context.Input("Input");
  const int64_t time = input.shape[0];
  const int64_t batch = input.shape[1];
  context.SetOutput("Out", {time, batch, settings.hidden_width()}, input.dtype);
  const size_t states = context.OutputCount("State");
  if (states > 0) CheckStateCount(context, "State", states);
  for (size_t i = 0; i < states; ++i)
    context.SetOutput("State", {settings.passes(), batch, settings.size}, input.dtype, i);
  context.SetOutput("Reserve", {time, batch, RnnReserve(settings).width()}, input.dtype);
  context.SetOutput("DropoutState", {time, batch, RnnDropoutWidth(context)}, DType::kUint8);
}

double Flop(const OpContext& context) {
  const Shape& input = context.Input("Input").shape;
  double weights = 0;
  for (size_t i = 0; i < context.InputCount("WeightList"); ++i) {
    const Shape& shape = context.Input("WeightList", i).shape;
    if (shape.rank() == 2) weights += static_cast<double>(shape[0]) * static_cast<double>(shape[1]);
  }
  return 2.0 * static_cast<double>(input[0]) * static_cast<double>(input[1]) * weights;
}

// The products with the weights of a pass.
template <typename T>
struct PassWeights {
  std::vector<RecurrentWeight<T>> input;   // as RnnSettings::input_parts
  std::vector<RecurrentWeight<T>> hidden;  // one
};

// Hidden states, side by side in `columns` columns, in batch order or in that of Out.
template <typename T>
struct HiddenRows {
  T* data = nullptr;
  int64_t columns = 0;
  bool is_padded = false;

  // Returns the row of sequence j at a time, from the column of a direction on.
  T* Row(const PaddedSteps& steps, int64_t j, int64_t time, int64_t column) const {
    return data + (is_padded ? steps.PaddedRow(j, time) : steps.Row(j, time)) * columns + column;
  }
};

// What the kernels of the op and of its gradient have in common. Members whose names end in
// "_rows" are workspaces with something for each row of the input.
template <typename T>
class RnnKernel : public Kernel {
 protected:
  using Wide = WideType<T>;

 public:
  bool AcceptsFewerRows() const override { return true; }

 protected:
  // The weights are transposed for the op, not for its gradient, which needs those of the first
  // input only if `wants_input`.
  RnnKernel(PrepareContext& context, bool is_gradient, bool wants_input)
      : settings_(RnnSettingsOf(context)),
        reserve_layout_(settings_),
        dropout_(RnnDropoutOf(context)),
        batch_(context.Input("Input").shape[1]),
        input_width_(context.Input("Input").shape[2]),
        max_rows_(MultiplyCounts(MaxTime(context), batch_)),
        input_(context, "Input"),
        lengths_(context, "SequenceLength"),
        numbers_(context, PaddedSteps::NumbersOf(MaxTime(context), batch_)),
        bias_(context, 1, settings_.gates_width()),
        dropped_rows_(context, drops() ? max_rows_ : 0, settings_.hidden_width()),
        input_pointers_(context, lengths_.is_there() && !kIsHalf<T> ? max_rows_ : 0),
        input_rows_(context, lengths_.is_there() && kIsHalf<T> ? max_rows_ : 0, input_width_),
        layer_input_(context, settings_.layers > 1 && kIsHalf<T> ? max_rows_ : 0,
                     settings_.hidden_width()) {
    for (size_t i = 0; i < settings_.states(); ++i) {
      pre_states_.emplace_back(context, "PreState", i);
      states_.emplace_back(context, batch_, settings_.size);
    }
    for (size_t i = 0; i < context.InputCount("WeightList"); ++i)
      weight_inputs_.emplace_back(context, "WeightList", i);
    for (int64_t pass = 0; pass < settings_.passes(); ++pass) {
      const bool wants = wants_input || pass >= settings_.directions;
      weights_.push_back(WeightsOf(context, pass, !is_gradient, wants));
    }
  }

  // If there are no sequences, the time may be any number.
  static int64_t MaxTime(const OpContext& context) {
    const Shape& input = context.Input("Input").shape;
    return input[1] == 0 ? 0 : input[0];
  }

  bool drops() const { return settings_.layers > 1 && dropout_.draws(); }
  bool is_lstm() const { return settings_.mode == RnnMode::kLstm; }
  bool is_backward(int64_t pass) const { return pass % settings_.directions == 1; }
  // The column of a pass in the hidden states of its layer.
  int64_t ColumnOf(int64_t pass) const { return pass % settings_.directions * settings_.size; }
  int64_t grain() const { return RecurrentGrain(settings_.gates_width()); }

  const T* Weight(const KernelContext& run, size_t index) const {
    return weight_inputs_[index](run);
  }
  Wide* State(const KernelContext& run, size_t i) const { return states_[i](run); }
  const Wide* PreState(const KernelContext& run, size_t i, int64_t pass) const {
    return pre_states_[i](run) + pass * batch_ * settings_.size;
  }

  PaddedSteps Steps(const KernelContext& run) const {
    const int64_t time = batch_ == 0 ? 0 : input_.shape(run)[0];
    return PaddedSteps(time, batch_, lengths_.is_there() ? &lengths_.tensor(run) : nullptr,
                       numbers_(run), "rnn: SequenceLength");
  }

  // Returns the rows of Input in batch order.
  MatrixRows<T> InputRows(const KernelContext& run, const PaddedSteps& steps) const {
    const T* input = input_(run);
    if (steps.is_dense()) return {.first = input, .stride = input_width_};
    if constexpr (kIsHalf<T>) {
      T* copies = input_rows_(run);
      steps.ForEachRow([&](int64_t row, int64_t padded_row) {
        std::copy_n(input + padded_row * input_width_, input_width_, copies + row * input_width_);
      });
      return {.first = copies, .stride = input_width_};
    }
    const T** rows = input_pointers_(run);
    steps.ForEachRow(
        [&](int64_t row, int64_t padded_row) { rows[row] = input + padded_row * input_width_; });
    return {.each = rows};
  }

  // Returns hidden states, as products read them. Of half, they stay until the next call.
  MatrixRows<T> LayerInputOf(const KernelContext& run, const Wide* hidden, int64_t rows) const {
    const int64_t columns = settings_.hidden_width();
    if constexpr (kIsHalf<T>) {
      RoundAll(hidden, rows * columns, layer_input_(run));
      return {.first = layer_input_(run), .stride = columns};
    } else {
      return {.first = hidden, .stride = columns};
    }
  }

  // Returns the biases of a pass, added up where their products are.
  const Wide* Bias(const KernelContext& run, int64_t pass) const {
    const T* of_input = Weight(run, settings_.bias(pass));
    const T* of_hidden = Weight(run, settings_.hidden_bias(pass));
    Wide* bias = bias_(run);
    WidenRow(of_hidden, settings_.weight_rows(), bias);
    if (settings_.mode == RnnMode::kGru)
      std::fill_n(bias + 3 * settings_.size, settings_.size, Wide{0});
    for (const RnnGatePart& part : settings_.input_parts()) {
      for (int64_t i = 0; i < part.count; ++i)
        bias[part.column + i] += static_cast<Wide>(of_input[part.row + i]);
    }
    return bias;
  }

  // Takes the functions of a run.
  void TakeFunctions() {
    lstm_functions_ = LstmFunctions<Wide>::Used();
    functions_ = RnnFunctions<Wide>::Used();
  }

  LstmCell<Wide> Lstm(const Wide* bias) const {
    return {.size = settings_.size,
            .gate = RecurrentActivation::kSigmoid,
            .cell = RecurrentActivation::kTanh,
            .candidate = RecurrentActivation::kTanh,
            .order = kRnnLstmOrder,
            .bias = bias};
  }
  ResetAfterGruCell<Wide> Gru(const Wide* bias) const { return {settings_.size, bias}; }
  SimpleRnnCell<Wide> Simple(const Wide* bias) const {
    return {settings_.size, settings_.activation, bias};
  }

  LstmFunctions<Wide> lstm_functions_ = {};
  RnnFunctions<Wide> functions_ = {};
  RnnSettings settings_;
  RnnReserve reserve_layout_;
  DropoutSettings dropout_;
  int64_t batch_;
  int64_t input_width_;
  int64_t max_rows_;
  std::vector<PassWeights<T>> weights_;
  In<T> input_;
  In<> lengths_;
  std::vector<In<Wide>> pre_states_;
  std::vector<In<T>> weight_inputs_;
  Workspace<int64_t> numbers_;
  Workspace<Wide> bias_;
  Workspace<Wide> dropped_rows_;
  // The rows of Input in batch order, unless all have the same length: where they are or, of half,
  // copies of them.
  Workspace<const T*> input_pointers_;
  Workspace<T> input_rows_;
  Workspace<T> layer_input_;             // of half: what a layer after the first reads
  std::vector<Workspace<Wide>> states_;  // of the sequences, of the longest one first

 private:
  PassWeights<T> WeightsOf(PrepareContext& context, int64_t pass, bool is_transposed,
                           bool wants_input) const {
    PassWeights<T> weights;
    const In<T>& input = weight_inputs_[settings_.weight(pass)];
    const In<T>& hidden = weight_inputs_[settings_.hidden_weight(pass)];
    const int64_t width = pass < settings_.directions ? input_width_ : settings_.hidden_width();
    for (const RnnGatePart& part : settings_.input_parts()) {
      if (!wants_input) break;
      weights.input.emplace_back(context, input, WeightPart{part.row * width, part.count, width},
                                 is_transposed);
    }
    weights.hidden.emplace_back(
        context, hidden, WeightPart{0, settings_.weight_rows(), settings_.size}, is_transposed);
    return weights;
  }
};

template <typename T>
class ForwardKernel final : public RnnKernel<T> {
  using typename RnnKernel<T>::Wide;

 public:
  explicit ForwardKernel(PrepareContext& context)
      : RnnKernel<T>(context, /*is_gradient=*/false, /*wants_input=*/true),
        out_(context, "Out"),
        wide_out_(context, max_rows_, settings_.hidden_width()),
        rounded_state_(context, kIsHalf<T> ? batch_ : 0, settings_.size),
        reserve_(context, "Reserve"),
        dropout_state_(context, "DropoutState"),
        gates_rows_(context, SavesGates() ? 0 : max_rows_, settings_.gates_width()),
        cells_(context, this->is_lstm() && !reserve_.is_there() ? 2 * batch_ : 0, settings_.size) {
    // The hidden states of a layer and those of the one before.
    const int64_t layers = reserve_.is_there() ? 0 : std::min<int64_t>(2, settings_.layers - 1);
    for (int64_t i = 0; i < layers; ++i)
      hidden_rows_.emplace_back(context, max_rows_, settings_.hidden_width());
    for (size_t i = 0; i < settings_.states(); ++i)
      state_outputs_.emplace_back(context, "State", i);
  }

  void Run(const KernelContext& run) override {
    this->TakeFunctions();
    const PaddedSteps steps = this->Steps(run);
    MatrixRows<T> input = this->InputRows(run, steps);
    for (int64_t layer = 0; layer < settings_.layers; ++layer) {
      const HiddenRows<Wide> hidden = Hidden(run, steps, layer);
      for (int64_t d = 0; d < settings_.directions; ++d)
        RunPass(run, steps, layer * settings_.directions + d, input, hidden);
      if (hidden.is_padded) break;
      input = this->LayerInputOf(run, Dropped(run, steps, layer, hidden.data), steps.rows());
    }
    ClearPadding(run, steps);
    RoundAll(WideOut(run), out_.count(run), out_(run));
    if (!this->drops()) ClearRest(run, dropout_state_, 0);
  }

 private:
  // A pass, while it runs.
  struct Pass {
    int64_t number;
    const Wide* bias;
    Wide* gates;      // in batch order
    Wide* cells;      // of an LSTM, saved in batch order or only those of a step
    Wide* activated;  // the same
    HiddenRows<Wide> hidden;
  };

  bool SavesGates() const { return reserve_.is_there() && settings_.mode != RnnMode::kSimple; }

  // Returns where the states of the last layer are, before they are rounded.
  Wide* WideOut(const KernelContext& run) const { return wide_out_(run, out_(run)).wide; }
  // Returns the hidden states before a step, as its product reads them.
  WideAndStored<T> RoundedState(const KernelContext& run) const {
    Wide* states = this->State(run, 0);
    if constexpr (kIsHalf<T>) {
      return {states, rounded_state_(run)};
    } else {
      return {states, states};
    }
  }

  Wide* Reserve(const KernelContext& run, const PaddedSteps& steps, int64_t numbers_before) const {
    return reserve_(run) + steps.rows() * numbers_before;
  }

  HiddenRows<Wide> Hidden(const KernelContext& run, const PaddedSteps& steps, int64_t layer) const {
    const int64_t columns = settings_.hidden_width();
    if (layer + 1 == settings_.layers) return {WideOut(run), columns, true};
    if (reserve_.is_there())
      return {Reserve(run, steps, reserve_layout_.Hidden(layer)), columns, false};
    const auto at = static_cast<size_t>(layer) % hidden_rows_.size();
    return {hidden_rows_[at](run), columns, false};
  }

  Pass PassOf(const KernelContext& run, const PaddedSteps& steps, int64_t number,
              const HiddenRows<Wide>& hidden) const {
    Pass pass{.number = number,
              .bias = this->Bias(run, number),
              .gates = SavesGates() ? Reserve(run, steps, reserve_layout_.Gates(number))
                                    : gates_rows_(run),
              .cells = nullptr,
              .activated = nullptr,
              .hidden = hidden};
    if (this->is_lstm()) {
      Wide* cells = cells_(run);
      pass.cells = SavesGates() ? Reserve(run, steps, reserve_layout_.Cell(number)) : cells;
      pass.activated = SavesGates() ? Reserve(run, steps, reserve_layout_.ActivatedCell(number))
                                    : cells + batch_ * settings_.size;
    }
    return pass;
  }

  void RunPass(const KernelContext& run, const PaddedSteps& steps, int64_t number,
               const MatrixRows<T>& input, const HiddenRows<Wide>& hidden) const {
    const int64_t size = settings_.size;
    const int64_t width = settings_.gates_width();
    const Pass pass = PassOf(run, steps, number, hidden);
    const PassWeights<T>& weights = weights_[static_cast<size_t>(number)];
    const std::vector<RnnGatePart> parts = settings_.input_parts();
    for (size_t i = 0; i < parts.size(); ++i) {
      weights.input[i].Multiply(run, input, steps.rows(), false, pass.gates + parts[i].column,
                                width);
    }
    for (size_t i = 0; i < settings_.states(); ++i) {
      const Wide* from = this->PreState(run, i, number);
      for (int64_t j = 0; j < batch_; ++j)
        std::copy_n(from + steps.Index(j) * size, size, this->State(run, i) + j * size);
    }
    const WideAndStored<T> state = RoundedState(run);
    state.Store(batch_ * size);
    steps.ForEach(this->is_backward(number), [&](const TimeSteps::Step& step) {
      Wide* gates = pass.gates + step.first * width;
      if (settings_.mode == RnnMode::kGru) {
        for (int64_t j = 0; j < step.count; ++j)
          std::fill_n(gates + j * width + 2 * size, size, Wide{0});
      }
      weights.hidden[0].Multiply(run, state.stored, step.count, size, true, gates, width);
      ParallelFor(step.count, this->grain(), [&](int64_t begin, int64_t end) {
        for (int64_t j = begin; j < end; ++j) RunRow(run, steps, pass, step, j);
      });
    });
    for (size_t i = 0; i < settings_.states(); ++i) {
      if (!state_outputs_[i].is_there()) continue;
      Wide* to = state_outputs_[i](run) + number * batch_ * size;
      for (int64_t j = 0; j < batch_; ++j)
        std::copy_n(this->State(run, i) + j * size, size, to + steps.Index(j) * size);
    }
  }

  void RunRow(const KernelContext& run, const PaddedSteps& steps, const Pass& pass,
              const TimeSteps::Step& step, int64_t j) const {
    const int64_t size = settings_.size;
    const int64_t row = step.first + j;
    Wide* gates = pass.gates + row * settings_.gates_width();
    Wide* hidden = pass.hidden.Row(steps, j, step.time, this->ColumnOf(pass.number));
    const WideAndStored<T> state = RoundedState(run) + j * size;
    if (this->is_lstm()) {
      const int64_t cell_row = SavesGates() ? row : j;
      Wide* cell_state = this->State(run, 1) + j * size;
      Wide* cell = pass.cells + cell_row * size;
      this->lstm_functions_.forward(this->Lstm(pass.bias), nullptr,
                                    {.cell_before = cell_state,
                                     .gates = gates,
                                     .cell = cell,
                                     .activated_cell = pass.activated + cell_row * size},
                                    hidden);
      std::copy_n(cell, size, cell_state);
    } else if (settings_.mode == RnnMode::kGru) {
      this->functions_.gru_forward(this->Gru(pass.bias), state.wide, gates, hidden);
    } else {
      this->functions_.simple_forward(this->Simple(pass.bias), gates, hidden);
    }
    std::copy_n(hidden, size, state.wide);
    state.Store(size);
  }

  // Returns the hidden states of a layer, as the next one gets them.
  const Wide* Dropped(const KernelContext& run, const PaddedSteps& steps, int64_t layer,
                      const Wide* hidden) const {
    if (!this->drops()) return hidden;
    const int64_t count = steps.rows() * settings_.hidden_width();
    uint8_t* mask = dropout_state_.is_there() ? dropout_state_(run) + layer * count : nullptr;
    const DropoutRule rule{dropout_.KeyOf(run), dropout_.threshold(),
                           static_cast<float>(dropout_.scale())};
    // Each layer has words of its own.
    const int64_t first_word = layer * ((count + 3) / 4 * 4);
    Wide* dropped = dropped_rows_(run);
    ParallelFor(count, kDropoutGrain, [&](int64_t begin, int64_t end) {
      DropoutRange(rule, dropout_.scale(), first_word + begin, end - begin, hidden + begin,
                   dropped + begin, mask == nullptr ? nullptr : mask + begin);
    });
    return dropped;
  }

  // Writes zeros where there is no row.
  void ClearPadding(const KernelContext& run, const PaddedSteps& steps) const {
    if (steps.is_dense()) return;
    const int64_t columns = settings_.hidden_width();
    Wide* out = WideOut(run);
    steps.ForEachPadding([&](int64_t row) { std::fill_n(out + row * columns, columns, Wide{0}); });
    ClearRest(run, reserve_, steps.rows() * reserve_layout_.width());
    if (this->drops())
      ClearRest(run, dropout_state_, steps.rows() * (settings_.layers - 1) * columns);
  }

  // Writes zeros to all elements of an output from `used` on.
  template <typename E>
  static void ClearRest(const KernelContext& run, const Out<E>& output, int64_t used) {
    if (output.is_there()) std::fill_n(output(run) + used, output.count(run) - used, E{0});
  }

  using RnnKernel<T>::settings_;
  using RnnKernel<T>::reserve_layout_;
  using RnnKernel<T>::dropout_;
  using RnnKernel<T>::batch_;
  using RnnKernel<T>::max_rows_;
  using RnnKernel<T>::weights_;
  using RnnKernel<T>::dropped_rows_;
  Out<T> out_;
  WideWorkspace<T> wide_out_;
  Workspace<T> rounded_state_;  // of half
  Out<Wide> reserve_;
  Out<uint8_t> dropout_state_;
  std::vector<Out<Wide>> state_outputs_;
  Workspace<Wide> gates_rows_;
  Workspace<Wide> cells_;
  std::vector<Workspace<Wide>> hidden_rows_;
};

template <typename T>
class GradKernel final : public RnnKernel<T> {
  using typename RnnKernel<T>::Wide;

 public:
  explicit GradKernel(PrepareContext& context)
      : RnnKernel<T>(context, /*is_gradient=*/true, context.HasOutput("Input@GRAD")),
        out_(context, {context, "Out"}, MultiplyCounts(max_rows_, settings_.hidden_width())),
        out_grad_(context, {context, "Out@GRAD"},
                  MultiplyCounts(max_rows_, settings_.hidden_width())),
        reserve_(context, "Reserve"),
        dropout_state_(context, "DropoutState"),
        input_grad_(context, "Input@GRAD"),
        input_products_(context, max_rows_, std::max(input_width_, WidestLayerInput()),
                        settings_.weight_rows()),
        hidden_product_(context, max_rows_, settings_.size, settings_.weight_rows()),
        gates_rows_(context, max_rows_, settings_.gates_width()),
        wide_gates_(context, batch_, settings_.gates_width()),
        before_pointers_(context, kIsHalf<T> ? 0 : max_rows_),
        before_rows_(context, kIsHalf<T> ? max_rows_ : 0, settings_.size),
        wide_input_grad_(context, input_grad_.is_there() ? max_rows_ : 0, input_width_),
        input_grad_rows_(context, lengths_.is_there() && input_grad_.is_there() ? max_rows_ : 0,
                         input_width_) {
    // The gradients of a layer's output and of its input.
    for (int64_t i = 0; i < std::min<int64_t>(2, settings_.layers - 1); ++i)
      hidden_grad_rows_.emplace_back(context, max_rows_, settings_.hidden_width());
    for (size_t i = 0; i < settings_.states(); ++i) {
      state_grads_.emplace_back(context, "State@GRAD", i);
      pre_state_grads_.emplace_back(context, "PreState@GRAD", i);
    }
    for (size_t i = 0; i < weight_inputs_.size(); ++i)
      weight_grads_.emplace_back(context, "WeightList@GRAD", i);
    SKIFF_ENFORCE(!this->drops() || dropout_state_.is_there(), kInvalidArgument,
                  "rnn_grad: DropoutState is missing, expected that of the forward op");
  }

  void Run(const KernelContext& run) override {
    this->TakeFunctions();
    out_.Load(run);
    out_grad_.Load(run);
    const PaddedSteps steps = this->Steps(run);
    HiddenRows<const Wide> out_grad{out_grad_(run), settings_.hidden_width(), true};
    for (int64_t layer = settings_.layers - 1; layer >= 0; --layer) {
      const MatrixRows<T> input =
          layer == 0 ? this->InputRows(run, steps) : LayerInput(run, steps, layer);
      PackInput(run, steps, layer, input);
      Wide* input_grad = LayerInputGradient(run, steps, layer);
      for (int64_t d = 0; d < settings_.directions; ++d) {
        const int64_t pass = layer * settings_.directions + d;
        RunPass(run, steps, pass, Hidden(run, steps, layer), out_grad);
        AddWeightGradients(run, steps, pass);
        if (input_grad != nullptr) MultiplyWeights(run, steps, pass, input_grad);
      }
      if (layer == 0) break;
      DropGradient(run, steps, layer - 1, input_grad);
      out_grad = {input_grad, settings_.hidden_width(), false};
    }
    WriteInputGradient(run, steps);
  }

 private:
  int64_t WidestLayerInput() const { return settings_.layers > 1 ? settings_.hidden_width() : 0; }
  int64_t InputWidth(int64_t layer) const {
    return layer == 0 ? input_width_ : settings_.hidden_width();
  }

  const Wide* Reserve(const KernelContext& run, const PaddedSteps& steps,
                      int64_t numbers_before) const {
    return reserve_(run) + steps.rows() * numbers_before;
  }
  HiddenRows<const Wide> Hidden(const KernelContext& run, const PaddedSteps& steps,
                                int64_t layer) const {
    const int64_t columns = settings_.hidden_width();
    if (layer + 1 == settings_.layers) return {out_(run), columns, true};
    return {Reserve(run, steps, reserve_layout_.Hidden(layer)), columns, false};
  }
  // Returns where the gradient of a layer's input goes, in batch order; nullptr if it isn't wanted.
  Wide* LayerInputGradient(const KernelContext& run, const PaddedSteps& steps,
                           int64_t layer) const {
    if (layer > 0) {
      const auto at = static_cast<size_t>(layer) % hidden_grad_rows_.size();
      return hidden_grad_rows_[at](run);
    }
    if (!input_grad_.is_there()) return nullptr;
    return steps.is_dense() ? WideInputGradient(run).wide : input_grad_rows_(run);
  }
  WideAndStored<T> WideInputGradient(const KernelContext& run) const {
    return wide_input_grad_(run, input_grad_(run));
  }
  const uint8_t* Mask(const KernelContext& run, const PaddedSteps& steps, int64_t layer) const {
    return dropout_state_(run) + layer * steps.rows() * settings_.hidden_width();
  }

  // Writes the hidden states of a layer, or gradients of them, without what was dropped.
  void Drop(const KernelContext& run, const PaddedSteps& steps, int64_t layer, const Wide* from,
            Wide* to) const {
    const uint8_t* mask = Mask(run, steps, layer);
    const auto scale = static_cast<Wide>(dropout_.scale());
    ParallelFor(steps.rows() * settings_.hidden_width(), kDropoutGrain,
                [=](int64_t begin, int64_t end) {
                  MaskedScaleRange(mask + begin, from + begin, scale, end - begin, to + begin);
                });
  }
  // Returns what a layer after the first has read.
  MatrixRows<T> LayerInput(const KernelContext& run, const PaddedSteps& steps,
                           int64_t layer) const {
    const Wide* hidden = Hidden(run, steps, layer - 1).data;
    if (this->drops() && WantsWeights(layer)) {
      Wide* dropped = dropped_rows_(run);
      Drop(run, steps, layer - 1, hidden, dropped);
      hidden = dropped;
    }
    return this->LayerInputOf(run, hidden, steps.rows());
  }
  void DropGradient(const KernelContext& run, const PaddedSteps& steps, int64_t layer,
                    Wide* gradient) const {
    if (this->drops()) Drop(run, steps, layer, gradient, gradient);
  }

  bool Wants(size_t weight) const { return weight_grads_[weight].is_there(); }
  bool WantsWeights(int64_t layer) const {
    const int64_t first = layer * settings_.directions;
    return Wants(settings_.weight(first)) ||
           Wants(settings_.weight(first + settings_.directions - 1));
  }
  T* WeightGradient(const KernelContext& run, size_t weight) const {
    return weight_grads_[weight](run);
  }

  void PackInput(const KernelContext& run, const PaddedSteps& steps, int64_t layer,
                 const MatrixRows<T>& input) const {
    if (WantsWeights(layer)) InputProduct(layer).Pack(run, input, steps.rows());
  }
  RowsProduct<T> InputProduct(int64_t layer) const {
    return input_products_.WithColumns(InputWidth(layer));
  }

  // Writes the gradients of all gates of a pass, and those of its initial states.
  void RunPass(const KernelContext& run, const PaddedSteps& steps, int64_t pass,
               const HiddenRows<const Wide>& hidden, const HiddenRows<const Wide>& out_grad) const {
    const int64_t size = settings_.size;
    for (size_t i = 0; i < settings_.states(); ++i) LoadStateGradient(run, steps, pass, i);
    T* gates = gates_rows_(run);
    // From the last step of the pass to its first.
    steps.ForEach(!this->is_backward(pass), [&](const TimeSteps::Step& step) {
      ParallelFor(step.count, this->grain(), [&](int64_t begin, int64_t end) {
        for (int64_t j = begin; j < end; ++j) RunRow(run, steps, pass, step, j, hidden, out_grad);
      });
      // A GRU has a part of this gradient already.
      weights_[static_cast<size_t>(pass)].hidden[0].Multiply(
          run, gates + step.first * settings_.gates_width(), step.count, settings_.gates_width(),
          settings_.mode == RnnMode::kGru, this->State(run, 0), size);
    });
    for (size_t i = 0; i < settings_.states(); ++i) {
      if (!pre_state_grads_[i].is_there()) continue;
      Wide* to = pre_state_grads_[i](run) + pass * batch_ * size;
      for (int64_t j = 0; j < batch_; ++j)
        std::copy_n(this->State(run, i) + j * size, size, to + steps.Index(j) * size);
    }
  }

  void LoadStateGradient(const KernelContext& run, const PaddedSteps& steps, int64_t pass,
                         size_t i) const {
    const int64_t size = settings_.size;
    Wide* to = this->State(run, i);
    if (!state_grads_[i].is_there()) {
      std::fill_n(to, batch_ * size, Wide{0});
      return;
    }
    const Wide* from = state_grads_[i](run) + pass * batch_ * size;
    for (int64_t j = 0; j < batch_; ++j)
      std::copy_n(from + steps.Index(j) * size, size, to + j * size);
  }

  // Keeps the hidden state before a row for the gradient of weights; it stays where it is.
  void KeepBefore(const KernelContext& run, int64_t row, const Wide* before) const {
    if constexpr (kIsHalf<T>) {
      RoundRow(before, settings_.size, before_rows_(run) + row * settings_.size);
    } else {
      before_pointers_(run)[row] = before;
    }
  }
  MatrixRows<T> BeforeRows(const KernelContext& run) const {
    if constexpr (kIsHalf<T>) {
      return {.first = before_rows_(run), .stride = settings_.size};
    } else {
      return {.each = before_pointers_(run)};
    }
  }

  void RunRow(const KernelContext& run, const PaddedSteps& steps, int64_t pass,
              const TimeSteps::Step& step, int64_t j, const HiddenRows<const Wide>& hidden,
              const HiddenRows<const Wide>& out_grad) const {
    const int64_t size = settings_.size;
    const int64_t width = settings_.gates_width();
    const int64_t column = this->ColumnOf(pass);
    const int64_t row = step.first + j;
    const int64_t time_before = step.time + (this->is_backward(pass) ? 1 : -1);
    const bool is_first = !steps.HasRow(j, time_before);
    const int64_t state = steps.Index(j) * size;
    const Wide* before =
        is_first ? this->PreState(run, 0, pass) + state : hidden.Row(steps, j, time_before, column);
    KeepBefore(run, row, before);
    const Wide* d_hidden = out_grad.Row(steps, j, step.time, column);
    Wide* next = this->State(run, 0) + j * size;
    const WideAndStored<T> of_gates =
        wide_gates_(run, gates_rows_(run) + step.first * width) + j * width;
    Wide* d_gates = of_gates.wide;
    const Wide* gates = settings_.mode == RnnMode::kSimple
                            ? nullptr
                            : Reserve(run, steps, reserve_layout_.Gates(pass)) + row * width;
    if (settings_.mode == RnnMode::kSimple) {
      this->functions_.simple_backward(this->Simple(nullptr),
                                       hidden.Row(steps, j, step.time, column),
                                       {.hidden = d_hidden, .next = next, .gates = d_gates});
    } else if (settings_.mode == RnnMode::kGru) {
      this->functions_.gru_backward(this->Gru(nullptr), before, gates,
                                    {.hidden = d_hidden, .next = next, .gates = d_gates});
    } else {
      const Wide* cells = Reserve(run, steps, reserve_layout_.Cell(pass));
      this->lstm_functions_.backward(
          this->Lstm(nullptr),
          LstmStep<const Wide>{
              .cell_before = is_first ? this->PreState(run, 1, pass) + state
                                      : cells + steps.Row(j, time_before) * size,
              .gates = gates,
              .cell = cells + row * size,
              .activated_cell =
                  Reserve(run, steps, reserve_layout_.ActivatedCell(pass)) + row * size},
          LstmStepGradient<Wide>{.hidden = d_hidden,
                                 .cell = nullptr,
                                 .next_hidden = next,
                                 .next_cell = this->State(run, 1) + j * size,
                                 .gates = d_gates});
    }
    of_gates.Store(width);
  }

  // Writes the gradients of the weights and biases of the pass whose gates have run.
  void AddWeightGradients(const KernelContext& run, const PaddedSteps& steps, int64_t pass) const {
    const T* gates = gates_rows_(run);
    const int64_t rows = steps.rows();
    const int64_t width = InputWidth(pass / settings_.directions);
    for (const RnnGatePart& part : settings_.input_parts()) {
      if (Wants(settings_.weight(pass))) {
        InputProduct(pass / settings_.directions)
            .Multiply(run, {.first = gates + part.column, .stride = settings_.gates_width()},
                      part.count, rows,
                      WeightGradient(run, settings_.weight(pass)) + part.row * width);
      }
      if (Wants(settings_.bias(pass))) {
        AddUpColumns(gates + part.column, rows, settings_.gates_width(), part.count,
                     WeightGradient(run, settings_.bias(pass)) + part.row);
      }
    }
    if (Wants(settings_.hidden_weight(pass))) {
      hidden_product_.Pack(run, BeforeRows(run), rows);
      hidden_product_.Multiply(run, {.first = gates, .stride = settings_.gates_width()},
                               settings_.weight_rows(), rows,
                               WeightGradient(run, settings_.hidden_weight(pass)));
    }
    if (Wants(settings_.hidden_bias(pass))) {
      AddUpColumns(gates, rows, settings_.gates_width(), settings_.weight_rows(),
                   WeightGradient(run, settings_.hidden_bias(pass)));
    }
  }

  // Adds to the gradient of a layer's input what comes through a pass.
  void MultiplyWeights(const KernelContext& run, const PaddedSteps& steps, int64_t pass,
                       Wide* input_grad) const {
    const T* gates = gates_rows_(run);
    const std::vector<RnnGatePart> parts = settings_.input_parts();
    const int64_t width = InputWidth(pass / settings_.directions);
    for (size_t i = 0; i < parts.size(); ++i) {
      const bool is_first = i == 0 && !this->is_backward(pass);
      weights_[static_cast<size_t>(pass)].input[i].Multiply(run, gates + parts[i].column,
                                                            steps.rows(), settings_.gates_width(),
                                                            !is_first, input_grad, width);
    }
  }

  // Writes Input@GRAD from rows in batch order.
  void WriteInputGradient(const KernelContext& run, const PaddedSteps& steps) const {
    if (!input_grad_.is_there()) return;
    T* to = input_grad_(run);
    if (steps.is_dense()) return RoundAll(WideInputGradient(run).wide, input_grad_.count(run), to);
    const int64_t width = input_width_;
    const Wide* from = input_grad_rows_(run);
    steps.ForEachRow([&](int64_t row, int64_t padded_row) {
      RoundRow(from + row * width, width, to + padded_row * width);
    });
    steps.ForEachPadding([&](int64_t row) { std::fill_n(to + row * width, width, T{}); });
  }

  using RnnKernel<T>::settings_;
  using RnnKernel<T>::reserve_layout_;
  using RnnKernel<T>::dropout_;
  using RnnKernel<T>::batch_;
  using RnnKernel<T>::input_width_;
  using RnnKernel<T>::max_rows_;
  using RnnKernel<T>::weights_;
  using RnnKernel<T>::lengths_;
  using RnnKernel<T>::weight_inputs_;
  using RnnKernel<T>::dropped_rows_;
  WidenedInput<T> out_;
  WidenedInput<T> out_grad_;
  In<Wide> reserve_;
  In<uint8_t> dropout_state_;
  Out<T> input_grad_;
  RowsProduct<T> input_products_;
  RowsProduct<T> hidden_product_;
  std::vector<In<Wide>> state_grads_;
  std::vector<Out<Wide>> pre_state_grads_;
  std::vector<Out<T>> weight_grads_;
  Workspace<T> gates_rows_;
  WideWorkspace<T> wide_gates_;  // of a step
  // The hidden states before all rows: where they are or, of half, copies.
  Workspace<const T*> before_pointers_;
  Workspace<T> before_rows_;
  WideWorkspace<T> wide_input_grad_;
  Workspace<Wide> input_grad_rows_;
  std::vector<Workspace<Wide>> hidden_grad_rows_;
};

std::vector<AttrDef> Attributes() {
  std::vector<AttrDef> attrs = UpscaledDropoutAttrs();
  std::erase_if(attrs, [](const AttrDef& attr) { return attr.name == "fix_seed"; });
  const auto is_positive = [](const Attribute& value) { return std::get<int32_t>(value) > 0; };
  attrs.insert(
      attrs.end(),
      {{.name = "is_bidirec",
        .type = AttrType::kBool,
        .default_value = false,
        .doc = "Whether each layer also runs from the last row of a sequence to the first."},
       {.name = "input_size",
        .type = AttrType::kInt,
        .default_value = int32_t{10},
        .doc = "Not read: W is the last dim of Input."},
       {.name = "hidden_size",
        .type = AttrType::kInt,
        .default_value = int32_t{100},
        .doc = "H.",
        .accepts = is_positive,
        .expected = "at least 1"},
       {.name = "num_layers",
        .type = AttrType::kInt,
        .default_value = int32_t{1},
        .doc = "The number of layers.",
        .accepts = is_positive,
        .expected = "at least 1"},
       ChoiceAttr("mode", "RNN_TANH", {"LSTM", "GRU", "RNN_TANH", "RNN_RELU"},
                  "The cell; RNN_TANH and RNN_RELU: h = tanh(g) or relu(g).")});
  return attrs;
}

void AddGrad(OpRegistry& registry, OpDef* forward) {
  OpDef def = GradientOf(forward,
                         {"Input", "PreState", "WeightList", "SequenceLength",
                          Optional("DropoutState"), "Reserve", "Out", "Out@GRAD", "State@GRAD"},
                         {"Input@GRAD", "PreState@GRAD", "WeightList@GRAD"});
  def.doc = "The gradients of the recurrent layers.";
  def.infer = [rule = std::move(def.infer)](OpContext& context) {
    // The rule of the forward op would say "State".
    const size_t states = context.InputCount("State@GRAD");
    if (states > 0) CheckStateCount(context, "State@GRAD", states);
    rule(context);
  };
  def.flop = GradFlop(Flop, {"Input@GRAD", "WeightList@GRAD"});
  registry.Add(std::move(def));
  const auto prepare = []<typename T>(PrepareContext& context) {
    return std::make_unique<GradKernel<T>>(context);
  };
  registry.AddCpuKernels<float, double>("rnn_grad", prepare);
  registry.AddNativeKernel<BFloat16>("rnn_grad", prepare);
}

}  // namespace

void RegisterRnn(OpRegistry& registry) {
  OpDef def;
  def.type = "rnn";
  def.doc = "Layers of recurrent cells over padded sequences.";
  def.inputs = {{.name = "Input", .doc = "[time, batch, W]."},
                {.name = "PreState",
                 .doc = "The hidden states at the start and, of an LSTM, the cells: each [layers * "
                        "directions, batch, H], the directions of a layer side by side.",
                 .duplicable = true,
                 .keeps_float32 = true},
                {.name = "WeightList",
                 .doc = "For each layer and direction the weights of the input [G, W] and of the "
                        "hidden state [G, H], then in the same order the two biases [G]. G is 4H "
                        "(i f c~ o), 3H (r z c) or H; W of later layers is directions * H.",
                 .duplicable = true},
                {.name = "SequenceLength",
                 .doc = "[batch], int32 or int64: the rows of each sequence; all, if absent.",
                 .dispensable = true,
                 .checks_data = true}};
  def.outputs = {
      {.name = "Out", .doc = "[time, batch, directions * H]: the hidden states of the last layer."},
      {.name = "DropoutState",
       .doc = "uint8: 1 where a hidden state between layers was kept, 0 where it was "
              "dropped. Empty where nothing is drawn.",
       .dispensable = true,
       .intermediate = true},
      {.name = "State",
       .doc = "Like PreState, at the end.",
       .duplicable = true,
       .dispensable = true,
       .keeps_float32 = true},
      {.name = "Reserve",
       .doc = "What the gradient reads: gates, cells and hidden states of all layers.",
       .dispensable = true,
       .intermediate = true,
       .keeps_float32 = true}};
  def.attrs = Attributes();
  def.infer = Infer;
  // PreState and State have the cells besides the hidden states.
  def.precision = Precision::kLow;
  def.kernel_dtype_slot = "Input";
  def.random = true;
  def.flop = Flop;
  AddGrad(registry, &def);
  registry.Add(std::move(def));
  const auto prepare = []<typename T>(PrepareContext& context) {
    return std::make_unique<ForwardKernel<T>>(context);
  };
  registry.AddCpuKernels<float, double>("rnn", prepare);
  registry.AddNativeKernel<BFloat16>("rnn", prepare);
}

}  // namespace skiff
