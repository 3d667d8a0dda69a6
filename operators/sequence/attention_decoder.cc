// attention_decoder: a recurrent decoder with attention over the rows of each sequence, whose words
// are all known before (teacher forcing). In each step, with the state h' of the step before:
//
//   q       = h' · QueryWeight + QueryBias; without QueryWeight h'
//   context = attention of q over the tokens of the sentence (kernels/token_attention.h)
//   h       = the step of a cell with the input g = Input + context · ContextWeight (+ Bias)
//
// That is with attends = "before". With "after", the step has no context and comes first, g = Input
// (+ Bias), and q is made of h, so that the context is there for what follows the decoder.
//
// Cell gru is that of gru_unit (kernels/gru_cell.h), lstm that of lstm_unit, with the same weights,
// order of gates and forget_bias. Additive scores are those of Bahdanau, Cho, Bengio 2015 (A.1.2),
// dot those of Luong, Pham, Manning 2015 ("general": the keys are the encoder's states times a
// matrix). Source: none, Fluid writes the steps with a DynamicRNN. Input is the product of the
// words with their weights: nothing waits for it, so one product outside makes it for all steps.
//
//   AttentionWeights   of each sequence a matrix, with a number for each of its rows and each token
//                      of its sentence
//   BatchGate          the activated gates of each row, in batch order (kernels/time_steps.h)
//   BatchQuery         q of each row, in batch order
//   BatchCellPreAct    tanh(Cell) of each row, in batch order
//
// The sequences run side by side: each product of a time step is of all sequences that have a row
// in it. Gradient: the same from the last step to the first. tanh(q + key) is computed again, since
// there is one for each pair of a row and a token. The gradients of weights are products over all
// rows at the end.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/sequence/kernels/attention_decoder_layer.h"
#include "operators/sequence/kernels/column_sums.h"
#include "operators/sequence/kernels/gru_steps.h"
#include "operators/sequence/kernels/lstm_steps.h"
#include "operators/sequence/kernels/rows_product.h"

namespace skiff {
namespace {

int64_t SentenceCount(const OpContext& context) {
  return MergeDims(SequenceCount(context, "Input"), SequenceCount(context, "Encoded"),
                   context.op().type + ": the sequences of Input and of Encoded");
}

// Checks that a slot is there if and only if the choice of an attribute needs it.
void CheckPresence(const OpContext& context, const char* slot, const char* attribute,
                   const char* value) {
  const bool is_needed = context.Attr<std::string>(attribute) == value;
  SKIFF_ENFORCE(context.HasInput(slot) == is_needed, kInvalidArgument, context.op().type, ": ",
                slot, " is ", is_needed ? "absent" : "there", " and ", attribute, " is \"",
                context.Attr<std::string>(attribute), "\", expected it with \"", value,
                "\" and nothing else");
}

// Writes the LoD of AttentionWeights, given those of Input and Encoded.
void WeightsLoD(const std::string& op, std::span<const LoD* const> parents, LoD* lod) {
  const SequenceRows targets(parents[0]->back());
  const SequenceRows sources(parents[1]->back());
  SKIFF_ENFORCE(targets.size() == sources.size(), kInvalidArgument, op, ": Input has ",
                targets.size(), " sequences, expected ", sources.size(), ", as many as Encoded");
  lod->resize(1);
  std::vector<uint64_t>& offsets = lod->front();
  offsets.assign(1, 0);
  for (int64_t i = 0; i < targets.size(); ++i) {
    offsets.push_back(offsets.back() +
                      static_cast<uint64_t>(targets[i].count() * sources[i].count()));
  }
}

// Returns the numbers of AttentionWeights, -1 while a program is built.
int64_t WeightCount(const OpContext& context) {
  const LoD* targets = context.InputLoD("Input");
  const LoD* sources = context.InputLoD("Encoded");
  if (targets == nullptr || sources == nullptr) return -1;
  const LoD* parents[] = {targets, sources};
  LoD lod;
  WeightsLoD(context.op().type, parents, &lod);
  return static_cast<int64_t>(lod.front().back());
}

void Infer(OpContext& context) {
  const Shape& weight = context.Input("Weight").shape;
  SKIFF_ENFORCE(weight.rank() == 2, kInvalidArgument, context.op().type, ": Weight is ", weight,
                ", expected a matrix");
  DecoderSizes sizes(context);
  sizes.gates =
      sizes.hidden < 0 ? -1 : MultiplyCounts(sizes.hidden, DecodesWithLstm(context) ? 4 : 3);
  const DType dtype = context.Input("Input").dtype;
  const int64_t sentences = SentenceCount(context);
  const int64_t tokens = context.Input("Encoded").shape[0];
  CheckInputLike(context, "Input", {-1, sizes.gates}, dtype);
  CheckInputLike(context, "Encoded", {tokens, sizes.width}, dtype);
  CheckInputLike(context, "Keys", {tokens, sizes.key_width}, dtype);
  CheckInputLike(context, "Weight", {sizes.hidden, sizes.gates}, dtype);
  CheckPresence(context, "ContextWeight", "attends", "before");
  if (context.HasInput("ContextWeight"))
    CheckInputLike(context, "ContextWeight", {sizes.width, sizes.gates}, dtype);
  const float forget_bias = context.Attr<float>("forget_bias");
  SKIFF_ENFORCE(forget_bias == 0 || DecodesWithLstm(context), kInvalidArgument, context.op().type,
                ": forget_bias is ", forget_bias, " and cell is \"gru\", expected 0");
  if (context.HasInput("Bias")) CheckInputLike(context, "Bias", {1, sizes.gates}, dtype);
  if (context.HasInput("H0")) CheckInputLike(context, "H0", {sentences, sizes.hidden}, dtype);
  if (context.HasInput("C0")) {
    SKIFF_ENFORCE(DecodesWithLstm(context), kInvalidArgument, context.op().type,
                  ": C0 is there and cell is \"gru\", which has no cell, expected it absent");
    CheckInputLike(context, "C0", {sentences, sizes.hidden}, dtype);
  }
  if (context.HasInput("QueryWeight")) {
    CheckInputLike(context, "QueryWeight", {sizes.hidden, sizes.key_width}, dtype);
  } else {
    CheckInputLike(context, "Keys", {tokens, sizes.hidden}, dtype);
  }
  if (context.HasInput("QueryBias")) CheckInputLike(context, "QueryBias", {sizes.key_width}, dtype);
  CheckPresence(context, "ScoreWeight", "score", "additive");
  if (context.HasInput("ScoreWeight"))
    CheckInputLike(context, "ScoreWeight", {sizes.key_width, 1}, dtype);

  const TensorMeta& input = context.Input("Input");
  const int64_t rows = input.shape[0];
  const auto set_rows = [&](const char* slot, int64_t width) {
    context.SetOutput(slot, {rows, width}, input.dtype);
  };
  set_rows("Hidden", sizes.hidden);
  set_rows("Context", sizes.width);
  set_rows("Cell", sizes.hidden);
  for (const char* slot : {"Hidden", "Context", "Cell"}) context.ShareLoD(slot, "Input");
  set_rows("BatchGate", sizes.gates);
  set_rows("BatchQuery", sizes.key_width);
  set_rows("BatchCellPreAct", sizes.hidden);
  context.SetOutput("AttentionWeights", {WeightCount(context)}, input.dtype);
  context.DeriveLoD("AttentionWeights", {"Input", "Encoded"}, 1,
                    [op = context.op().type](std::span<const LoD* const> parents, LoD* lod) {
                      WeightsLoD(op, parents, lod);
                    });
}

double Flop(const OpContext& context) {
  return ProductFlop(context, "Input", {"Weight", "ContextWeight", "QueryWeight"});
}

template <typename T, typename From>
void AddTo(T* to, const From* from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] += static_cast<T>(from[i]);
}

// What the kernels of the op and of its gradient have in common.
template <typename T>
class DecoderKernel : public Kernel {
 protected:
  using Wide = WideType<T>;

 public:
  bool AcceptsFewerRows() const override { return true; }

 protected:
  DecoderKernel(PrepareContext& context, bool is_gradient)
      : sizes_(context),
        in_(context),
        encoded_(context, in_.seen.encoded, MultiplyCounts(sizes_.tokens, sizes_.width)),
        keys_(context, in_.seen.keys, MultiplyCounts(sizes_.tokens, sizes_.key_width)),
        score_weight_(context, in_.seen.score_weight, sizes_.key_width),
        first_weights_(context, sizes_.most.sequences) {
    if (AttendsBefore(context)) {
      context_weight_.emplace(context, in_.context_weight,
                              WeightPart{0, sizes_.width, sizes_.gates}, is_gradient);
    }
    if (context.HasInput("QueryWeight")) {
      query_weight_.emplace(context, in_.query_weight,
                            WeightPart{0, sizes_.hidden, sizes_.key_width}, is_gradient);
    }
  }

  // What sequence j sees in each step.
  AttendedTokens<Wide> Seen(const KernelContext& run, const TimeSteps& steps, int64_t j) const {
    return sizes_.Tokens(in_.seen.Sentences(run)[steps.Index(j)], encoded_(run), keys_(run),
                         score_weight_(run));
  }
  int64_t FirstToken(const KernelContext& run, const TimeSteps& steps, int64_t j) const {
    return in_.seen.Sentences(run)[steps.Index(j)].begin;
  }
  // The numbers of a step of a sentence of average length.
  int64_t AttentionWork(const KernelContext& run) const {
    const Tensor& encoded = in_.seen.encoded.tensor(run);
    const int64_t sentences = std::max<int64_t>(1, SequenceRows(encoded).size());
    return (sizes_.width + sizes_.key_width) * (encoded.shape()[0] / sentences + 1);
  }

  // Begins a run: takes the functions, and finds where in AttentionWeights each sentence begins.
  void Begin(const KernelContext& run) {
    functions_ = AttentionFunctions<Wide>::Used();
    encoded_.Load(run);
    keys_.Load(run);
    score_weight_.Load(run);
    ForEachSentencePair(SequenceRows(in_.input.tensor(run)), in_.seen.Sentences(run),
                        [first = first_weights_(run)](int64_t i, const RowRange&, const RowRange&,
                                                      int64_t weight) { first[i] = weight; });
  }
  // Returns where in AttentionWeights a row of a sentence with so many tokens begins.
  int64_t WeightsOf(const KernelContext& run, const StepOfRows& rows, int64_t j,
                    int64_t tokens) const {
    return first_weights_(run)[rows.steps.Index(j)] + rows.step.time * tokens;
  }

  DecoderSizes sizes_;
  std::optional<RecurrentWeight<T>> query_weight_;
  std::optional<RecurrentWeight<T>> context_weight_;  // if the attention comes before the step
  DecoderInputs<T> in_;
  WidenedInput<T> encoded_;
  WidenedInput<T> keys_;
  WidenedInput<T> score_weight_;
  AttentionFunctions<Wide> functions_ = {};
  Workspace<int64_t> first_weights_;
};

// Steps: of the cell (kernels/lstm_steps.h, kernels/gru_steps.h).
template <typename T, typename Steps>
class ForwardKernel final : public DecoderKernel<T> {
  static_assert(ForwardSteps<Steps, T>);
  using typename DecoderKernel<T>::Wide;

 public:
  ForwardKernel(PrepareContext& context, const typename Steps::Layer& layer)
      : DecoderKernel<T>(context, /*is_gradient=*/false),
        rows_(context, layer, /*is_reverse=*/false),
        steps_(context, layer),
        query_bias_(context, {context, "QueryBias"}, sizes_.key_width),
        hidden_(context, "Hidden"),
        context_(context, "Context"),
        weights_(context, "AttentionWeights"),
        gates_(context, "BatchGate", sizes_.most.sequences, sizes_.gates),
        queries_(context, "BatchQuery", sizes_.most.sequences, sizes_.key_width),
        states_(context, sizes_.most.sequences, sizes_.hidden),
        wide_states_(context, sizes_.most.sequences, sizes_.hidden),
        contexts_(context, sizes_.most.sequences, sizes_.width),
        wide_contexts_(context, sizes_.most.sequences, sizes_.width),
        step_weights_(context, weights_.is_there() ? 0 : sizes_.tokens) {}

  void Run(const KernelContext& run) override {
    const TimeSteps steps = rows_.Steps(run);
    T* hidden = hidden_(run);
    const WideAndStored<T> zeros = rows_.Zeros(run);
    const StateRows<T> before = rows_.States(run, hidden, zeros.stored);
    steps_.Begin(run, zeros.wide);
    this->Begin(run);
    query_bias_.Load(run);
    const WideAndStored<T> states = wide_states_(run, states_(run));
    steps.ForEach([&](const TimeSteps::Step& step) {
      const StepOfRows rows{steps, step};
      if (step.time == 0) before.CopyInitial(rows, states);
      Wide* gates = gates_(run, step);
      if (this->context_weight_) {
        AttendAll(run, rows, states);
        this->context_weight_->Multiply(run, contexts_(run), step.count, sizes_.width, false, gates,
                                        sizes_.gates);
      }
      steps_.Run(run, rows,
                 {.input = rows_.input(run),
                  .hidden = hidden,
                  .states = states,
                  .gates = gates,
                  .product = this->context_weight_ ? StateProduct::kAdd : StateProduct::kSet});
      gates_.Save(run, step);
      if (!this->context_weight_) AttendAll(run, rows, states);
    });
  }

 private:
  // Computes the contexts of the rows, given the states.
  void AttendAll(const KernelContext& run, const StepOfRows& rows,
                 const WideAndStored<T>& states) const {
    const int64_t key_width = sizes_.key_width;
    Wide* queries = queries_(run, rows.step);
    if (this->query_weight_) {
      this->query_weight_->Multiply(run, states.stored, rows.step.count, sizes_.hidden, false,
                                    queries, key_width);
    }
    const Wide* bias = query_bias_(run);
    const WideAndStored<T> contexts = wide_contexts_(run, contexts_(run));
    rows.ForEach(this->AttentionWork(run), [&](int64_t j) {
      Wide* query = queries + j * key_width;
      if (!this->query_weight_) std::copy_n(states.wide + j * sizes_.hidden, key_width, query);
      if (bias != nullptr) AddTo(query, bias, key_width);
      const AttendedTokens<Wide> seen = this->Seen(run, rows.steps, j);
      Wide* weights = weights_.is_there()
                          ? weights_(run) + this->WeightsOf(run, rows, j, seen.tokens)
                          : step_weights_(run) + this->FirstToken(run, rows.steps, j);
      const WideAndStored<T> context = contexts + j * sizes_.width;
      this->functions_.forward(seen, query, weights, context.wide);
      context.Store(sizes_.width);
      if (!context_.is_there()) return;
      std::copy_n(context.stored, sizes_.width, context_(run) + rows.Row(j) * sizes_.width);
    });
    queries_.Save(run, rows.step);
  }

  using DecoderKernel<T>::sizes_;
  RecurrentRows<T> rows_;
  Steps steps_;
  WidenedInput<T> query_bias_;
  Out<T> hidden_;
  Out<T> context_;
  Out<Wide> weights_;
  SavedNumbers<T> gates_;
  SavedNumbers<T> queries_;
  Workspace<T> states_;
  WideWorkspace<T> wide_states_;
  Workspace<T> contexts_;
  WideWorkspace<T> wide_contexts_;
  Workspace<Wide> step_weights_;
};

template <typename T, typename Steps>
class GradKernel final : public DecoderKernel<T> {
  static_assert(BackwardSteps<Steps, T>);
  using typename DecoderKernel<T>::Wide;

 public:
  GradKernel(PrepareContext& context, const typename Steps::Layer& layer)
      : DecoderKernel<T>(context, /*is_gradient=*/true),
        rows_(context, layer, /*is_reverse=*/false),
        steps_(context, layer),
        args_(context),
        gates_(context, args_.batch_gate, sizes_.most.sequences, sizes_.gates),
        queries_(context, args_.batch_query, sizes_.most.sequences, sizes_.key_width),
        product_(context, sizes_.most.rows, std::max(sizes_.gates, sizes_.key_width),
                 std::max(sizes_.hidden, sizes_.width)),
        encoded_product_(context, args_.of_encoded.is_there() ? sizes_.most.rows : 0, sizes_.width,
                         sizes_.tokens),
        next_(context, sizes_.most.sequences, sizes_.hidden),
        step_gates_(context, sizes_.most.sequences, sizes_.gates),
        wide_gates_(context, sizes_.most.sequences, sizes_.gates),
        step_contexts_(context, sizes_.most.sequences, sizes_.width),
        step_queries_(context, sizes_.most.sequences, sizes_.key_width),
        wide_queries_(context, sizes_.most.sequences, sizes_.key_width),
        step_scores_(context, sizes_.tokens),
        score_weights_(context, args_.of_score_weight.is_there() ? sizes_.most.sequences : 0,
                       sizes_.key_width),
        keys_grad_(context, args_.of_keys.is_there() ? sizes_.tokens : 0, sizes_.key_width),
        encoded_grad_(context, args_.of_encoded.is_there() ? sizes_.tokens : 0, sizes_.width),
        all_gates_(context, args_.of_input, sizes_.most.rows, sizes_.gates),
        all_contexts_(context, args_.of_encoded.is_there() ? sizes_.most.rows : 0, sizes_.width),
        all_queries_(context, sizes_.most.rows, sizes_.key_width),
        before_pointers_(context, sizes_.most.rows) {}

  void Run(const KernelContext& run) override {
    const TimeSteps steps = rows_.Steps(run);
    const WideAndStored<T> zeros = rows_.Zeros(run);
    const StateRows<T> before = rows_.States(run, args_.hidden(run), zeros.stored);
    const int64_t sentences = rows_.Sequences(run).size();
    const WideAndStored<T> of_keys = keys_grad_(run, args_.of_keys(run));
    steps_.Begin(run, zeros.wide, sentences);
    this->Begin(run);
    std::fill_n(next_(run), sentences * sizes_.hidden, Wide{0});
    if (args_.of_score_weight.is_there())
      std::fill_n(score_weights_(run), sentences * sizes_.key_width, Wide{0});
    if (args_.of_keys.is_there()) std::fill_n(of_keys.wide, args_.of_keys.count(run), Wide{0});
    steps.ForEachBackwards([&](const TimeSteps::Step& step) {
      const StepOfRows rows{steps, step};
      if (!this->context_weight_) {
        std::fill_n(step_contexts_(run), step.count * sizes_.width, Wide{0});
        AttendAllBackward(run, rows);
      }
      T* step_gates = step_gates_(run);
      steps_.Run(run, rows,
                 {.before = before,
                  .hidden = args_.of_hidden(run),
                  .gates = gates_(run, step),
                  .next = next_(run),
                  .step_gates = wide_gates_(run, step_gates),
                  .row_gates = all_gates_(run)});
      if (!this->context_weight_) return;
      this->context_weight_->Multiply(run, step_gates, step.count, sizes_.gates, false,
                                      step_contexts_(run), sizes_.width);
      AttendAllBackward(run, rows);
    });
    if (args_.of_h0.is_there()) {
      steps.FromLongestFirst<T>(next_(run), sizes_.hidden, args_.of_h0(run));
    }
    steps_.End(run, steps, args_.hidden.shape(run)[0]);
    if (args_.of_keys.is_there()) RoundAll(of_keys.wide, args_.of_keys.count(run), of_keys.stored);
    WriteWeightGradients(run, before);
    if (args_.of_encoded.is_there()) WriteEncodedGradient(run);
  }

 private:
  // Given the gradient of the contexts without that from the outside, adds the gradient of the
  // states that the queries are made of.
  void AttendAllBackward(const KernelContext& run, const StepOfRows& rows) const {
    const int64_t key_width = sizes_.key_width;
    const T* context_grad = args_.of_context(run);
    const Wide* before = queries_(run, rows.step);
    const WideAndStored<T> queries = wide_queries_(run, step_queries_(run));
    Wide* next = next_(run);
    rows.ForEach(this->AttentionWork(run), [&](int64_t j) {
      const int64_t row = rows.Row(j);
      Wide* context = step_contexts_(run) + j * sizes_.width;
      if (context_grad != nullptr) AddTo(context, context_grad + row * sizes_.width, sizes_.width);
      const WideAndStored<T> query = queries + j * key_width;
      this->functions_.backward(this->Seen(run, rows.steps, j), before + j * key_width,
                                Weights(run, rows, j, args_.weights),
                                AttentionOf(run, rows, j, context, query.wide));
      query.Store(key_width);
      if (args_.of_encoded.is_there()) {
        std::copy_n(context, sizes_.width, all_contexts_(run) + row * sizes_.width);
      }
      std::copy_n(query.stored, key_width, all_queries_(run) + row * key_width);
      if (!this->query_weight_) AddTo(next + j * key_width, query.wide, key_width);
    });
    if (!this->query_weight_) return;
    this->query_weight_->Multiply(run, queries.stored, rows.step.count, key_width, true, next,
                                  sizes_.hidden);
  }

  // Returns the numbers of row j in an input like AttentionWeights, nullptr if it is absent.
  const Wide* Weights(const KernelContext& run, const StepOfRows& rows, int64_t j,
                      const In<Wide>& input) const {
    if (!input.is_there()) return nullptr;
    const int64_t tokens = this->in_.seen.Sentences(run)[rows.steps.Index(j)].count();
    return input(run) + this->WeightsOf(run, rows, j, tokens);
  }

  AttentionGradient<Wide> AttentionOf(const KernelContext& run, const StepOfRows& rows, int64_t j,
                                      const Wide* context, Wide* query) const {
    const int64_t first_token = this->FirstToken(run, rows.steps, j);
    Wide* keys = args_.of_keys.is_there() ? keys_grad_(run, args_.of_keys(run)).wide : nullptr;
    return {.context = context,
            .weights = Weights(run, rows, j, args_.of_weights),
            .scores = step_scores_(run) + first_token,
            .query = query,
            .keys = keys == nullptr ? nullptr : keys + first_token * sizes_.key_width,
            .score_weight = args_.of_score_weight.is_there()
                                ? score_weights_(run) + j * sizes_.key_width
                                : nullptr};
  }

  void WriteWeightGradients(const KernelContext& run, const StateRows<T>& before) const {
    const SequenceRows targets = rows_.Sequences(run);
    const int64_t rows = args_.hidden.shape(run)[0];
    const MatrixRows<T> before_rows = BeforeRows(run, targets, before);
    const MatrixRows<T> contexts{.first = args_.context(run), .stride = sizes_.width};
    const T* gates = all_gates_(run);
    const T* queries = all_queries_(run);
    const RowsProduct<T> gates_product = product_.WithColumns(sizes_.gates);
    gates_product.Pack(run, {.first = gates, .stride = sizes_.gates}, rows);
    if (args_.of_context_weight.is_there()) {
      gates_product.Multiply(run, contexts, sizes_.width, rows, args_.of_context_weight(run));
    }
    if (args_.of_weight.is_there()) {
      steps_.Sum(run, gates_product, before_rows, gates, rows, args_.of_weight(run));
    }
    if (args_.of_query_weight.is_there()) {
      const RowsProduct<T> query_product = product_.WithColumns(sizes_.key_width);
      query_product.Pack(run, {.first = queries, .stride = sizes_.key_width}, rows);
      const MatrixRows<T> after_rows{.first = before.rows, .stride = sizes_.hidden};
      query_product.Multiply(run, this->context_weight_ ? before_rows : after_rows, sizes_.hidden,
                             rows, args_.of_query_weight(run));
    }
    WriteSum(run, args_.of_bias, gates, rows, sizes_.gates);
    WriteSum(run, args_.of_query_bias, queries, rows, sizes_.key_width);
    WriteSum(run, args_.of_score_weight, score_weights_(run), targets.size(), sizes_.key_width);
  }

  // Returns the states before all rows.
  MatrixRows<T> BeforeRows(const KernelContext& run, const SequenceRows& targets,
                           const StateRows<T>& before) const {
    const int64_t size = sizes_.hidden;
    const T** pointers = before_pointers_(run);
    for (int64_t i = 0; i < targets.size(); ++i) {
      const RowRange rows = targets[i];
      for (int64_t row = rows.begin; row < rows.end; ++row) {
        pointers[row] = row > rows.begin            ? before.rows + (row - 1) * size
                        : before.initial != nullptr ? before.initial + i * size
                                                    : before.zeros;
      }
    }
    return {.each = pointers};
  }

  template <typename From>
  void WriteSum(const KernelContext& run, const Out<T>& output, const From* matrix, int64_t rows,
                int64_t columns) const {
    if (output.is_there()) AddUpColumns(matrix, rows, columns, columns, output(run));
  }

  // Of each sentence, the product of its weights, [rows, tokens], and the gradients of its
  // contexts.
  void WriteEncodedGradient(const KernelContext& run) const {
    const SequenceRows targets = rows_.Sequences(run);
    const SequenceRows sources = this->in_.seen.Sentences(run);
    const Wide* weights = args_.weights(run);
    const WideAndStored<T> to = encoded_grad_(run, args_.of_encoded(run));
    for (int64_t i = 0; i < targets.size(); ++i) {
      const int64_t rows = targets[i].count();
      const int64_t tokens = sources[i].count();
      encoded_product_.Pack(
          run,
          {.first = all_contexts_(run) + targets[i].begin * sizes_.width, .stride = sizes_.width},
          rows);
      encoded_product_.Multiply(run,
                                {.first = weights + this->first_weights_(run)[i], .stride = tokens},
                                tokens, rows, to.wide + sources[i].begin * sizes_.width);
    }
    RoundAll(to.wide, args_.of_encoded.count(run), to.stored);
  }

  using DecoderKernel<T>::sizes_;
  RecurrentRows<T> rows_;
  Steps steps_;
  DecoderGradients<T> args_;
  ReadNumbers<T> gates_;    // that the op has saved
  ReadNumbers<T> queries_;  // the same
  RowsProduct<T> product_;
  RowsProduct<Wide> encoded_product_;
  // Of the rows of a step:
  Workspace<Wide> next_;  // the gradient of the states, from later steps
  Workspace<T> step_gates_;
  WideWorkspace<T> wide_gates_;
  Workspace<Wide> step_contexts_;
  Workspace<T> step_queries_;
  WideWorkspace<T> wide_queries_;
  Workspace<Wide> step_scores_;
  Workspace<Wide> score_weights_;  // the gradient of ScoreWeight by sequence
  // Of all tokens:
  WideWorkspace<T> keys_grad_;
  WideWorkspace<T> encoded_grad_;
  // Of all rows:
  OutputOrWorkspace<T> all_gates_;  // the gradient of g
  Workspace<Wide> all_contexts_;
  Workspace<T> all_queries_;
  Workspace<const T*> before_pointers_;
};

std::vector<AttrDef> Attributes() {
  return {ChoiceAttr("cell", "gru", {"gru", "lstm"}, "The cell: that of gru_unit or lstm_unit."),
          ChoiceAttr("score", "additive", {"additive", "dot"},
                     "v · tanh(query + key), or query · key."),
          ChoiceAttr("attends", "before", {"before", "after"},
                     "Which state makes the query of a step. That before it: the step has the "
                     "context. That after it: only what follows has it."),
          {.name = "forget_bias",
           .type = AttrType::kFloat,
           .default_value = 0.0f,
           .doc = "Is added to f of lstm, before its sigmoid."}};
}

void AddGrad(OpRegistry& registry, OpDef* forward) {
  OpDef def = GradientOf(forward,
                         {ForShape("Input"),
                          "Encoded",
                          "Keys",
                          "H0",
                          "C0",
                          "Weight",
                          "ContextWeight",
                          "Bias",
                          "QueryWeight",
                          ForShape("QueryBias"),
                          "ScoreWeight",
                          "Hidden",
                          "Context",
                          Optional("Cell"),
                          "AttentionWeights",
                          "BatchGate",
                          "BatchQuery",
                          Optional("BatchCellPreAct"),
                          "Hidden@GRAD",
                          "Context@GRAD",
                          "Cell@GRAD",
                          "AttentionWeights@GRAD"},
                         {"Input@GRAD", "Encoded@GRAD", "Keys@GRAD", "H0@GRAD", "C0@GRAD",
                          "Weight@GRAD", "ContextWeight@GRAD", "Bias@GRAD", "QueryWeight@GRAD",
                          "QueryBias@GRAD", "ScoreWeight@GRAD"});
  def.doc = "The gradients of the decoder with attention.";
  def.infer = [rule = std::move(def.infer)](OpContext& context) {
    rule(context);
    for (const char* slot : {"Cell", "BatchCellPreAct"})
      CheckPresence(context, slot, "cell", "lstm");
  };
  def.flop = GradFlop(Flop, {"Input@GRAD", "Weight@GRAD"});
  registry.Add(std::move(def));
  const auto prepare = []<typename T>(PrepareContext& context) {
    return PrepareDecoder<T, GradKernel, LstmBackwardSteps<T>, GruBackwardSteps<T>>(context);
  };
  registry.AddCpuKernels<float, double>("attention_decoder_grad", prepare);
  registry.AddNativeKernel<BFloat16>("attention_decoder_grad", prepare);
}

}  // namespace

void RegisterAttentionDecoder(OpRegistry& registry) {
  OpDef def;
  def.type = "attention_decoder";
  def.doc = "A recurrent decoder with attention over the rows of each sequence.";
  def.inputs = {
      {.name = "Input",
       .doc = "Ragged, [rows, gates]: the words times their weights. gates: 3H of gru, for u, r "
              "and c; 4H of lstm, for i, f, o and c~."},
      {.name = "Encoded",
       .doc = "Ragged, [tokens, E]: what the decoder looks at. As many sequences as Input."},
      {.name = "Keys", .doc = "[tokens, A]: what each token is found by."},
      {.name = "H0",
       .doc = "[sequences, H]: the hidden state at the start; 0 if absent.",
       .dispensable = true},
      {.name = "C0",
       .doc = "[sequences, H]: the cell of lstm at the start; 0 if absent.",
       .dispensable = true,
       .keeps_float32 = true},
      {.name = "Weight", .doc = "[H, gates]: of the hidden state. Of gru as the op gru has it."},
      {.name = "ContextWeight",
       .doc = "[E, gates]: of the context; with attends = before.",
       .dispensable = true},
      {.name = "Bias", .doc = "[1, gates]; 0 if absent.", .dispensable = true},
      {.name = "QueryWeight",
       .doc = "[H, A]: makes the query of the hidden state; if absent, that is the query, and A is "
              "H.",
       .dispensable = true},
      {.name = "QueryBias", .doc = "[A]; 0 if absent.", .dispensable = true},
      {.name = "ScoreWeight", .doc = "[A, 1]: v of additive scores.", .dispensable = true}};
  def.outputs = {
      {.name = "Hidden", .doc = "[rows, H], ragged like Input."},
      {.name = "Context", .doc = "[rows, E], ragged like Input.", .dispensable = true},
      {.name = "Cell",
       .doc = "[rows, H], ragged like Input. Of lstm.",
       .dispensable = true,
       .keeps_float32 = true},
      {.name = "AttentionWeights",
       .doc = "[pairs]: for each sequence a matrix, [its rows, the tokens of its sentence].",
       .dispensable = true,
       .keeps_float32 = true},
      {.name = "BatchGate",
       .doc = "[rows, gates]: the activated gates, in batch order.",
       .dispensable = true,
       .intermediate = true},
      {.name = "BatchQuery",
       .doc = "[rows, A]: the queries, in batch order.",
       .dispensable = true,
       .intermediate = true},
      {.name = "BatchCellPreAct",
       .doc = "[rows, H]: tanh of Cell, in batch order. Of lstm.",
       .dispensable = true,
       .intermediate = true}};
  def.attrs = Attributes();
  def.infer = Infer;
  def.precision = Precision::kLow;
  def.flop = Flop;
  AddGrad(registry, &def);
  registry.Add(std::move(def));
  const auto prepare = []<typename T>(PrepareContext& context) {
    return PrepareDecoder<T, ForwardKernel, LstmForwardSteps<T>, GruForwardSteps<T>>(context);
  };
  registry.AddCpuKernels<float, double>("attention_decoder", prepare);
  registry.AddNativeKernel<BFloat16>("attention_decoder", prepare);
}

}  // namespace skiff
