// CUDA kernels of attention_decoder; attention_decoder.cc has the formulas. A time step is the
// products with the weights, the launches of its cell (cuda_gru_cell.cuh, cuda_lstm_cell.cuh) and
// one for the attention. What the gradients of weights are products of lies in batch order.
#include <algorithm>
#include <memory>
#include <string>

#include "framework/op/registry.h"
#include "operators/sequence/kernels/cuda_attention.cuh"
#include "operators/sequence/kernels/cuda_gru_cell.cuh"
#include "operators/sequence/kernels/cuda_lstm_cell.cuh"
#include "operators/sequence/kernels/cuda_steps.cuh"

namespace skiff {
namespace {

struct Sizes {
  explicit Sizes(const OpContext& context)
      : hidden(context.Input("Weight").shape[0]),
        gates(context.Input("Weight").shape[1]),
        width(RowWidth(context, "Encoded")),
        key_width(RowWidth(context, "Keys")),
        rows(context.Input("Input").shape[0]),
        tokens(context.Input("Encoded").shape[0]),
        sentences(std::max(SequenceCount(context, "Input"), SequenceCount(context, "Encoded"))) {}

  int64_t hidden;     // H
  int64_t gates;      // 3H or 4H
  int64_t width;      // E
  int64_t key_width;  // A
  // At most:
  int64_t rows;
  int64_t tokens;
  int64_t sentences;
};

// What the kernels of the op and of its gradient have in common.
template <typename T>
class DecoderKernel : public Kernel {
 public:
  bool TakesFewerRows() const override { return true; }

 protected:
  DecoderKernel(PrepareContext& context, bool is_gradient)
      : sizes_(context),
        is_lstm_(context.Attr<std::string>("cell") == "lstm"),
        attends_before_(context.Attr<std::string>("attends") == "before"),
        forget_bias_(context.Attr<float>("forget_bias")),
        steps_(context, sizes_.sentences, /*is_reverse=*/false),
        sentences_(context, sizes_.sentences),
        gru_(is_lstm_ ? 0 : sizes_.sentences, sizes_.hidden, is_gradient),
        lstm_product_(is_lstm_ ? sizes_.sentences : 0,
                      ShapeOf(sizes_.hidden, sizes_.gates, is_gradient)),
        query_product_(context.HasInput("QueryWeight") ? sizes_.sentences : 0,
                       ShapeOf(sizes_.hidden, sizes_.key_width, is_gradient)),
        context_product_(attends_before_ ? sizes_.sentences : 0,
                         ShapeOf(sizes_.width, sizes_.gates, is_gradient)),
        // There is no product with a context of no numbers.
        adds_context_(attends_before_ && sizes_.width > 0),
        input_(context, "Input"),
        encoded_(context, "Encoded"),
        keys_(context, "Keys"),
        h0_(context, "H0"),
        c0_(context, "C0"),
        weight_(context, "Weight"),
        context_weight_(context, "ContextWeight"),
        bias_(context, "Bias"),
        query_weight_(context, "QueryWeight"),
        score_weight_(context, "ScoreWeight") {}

  // Takes the sequences of a run. Returns what its rows see.
  Attended<T> Load(const KernelContext& run) {
    const SequenceRows targets(input_.tensor(run));
    const SequenceRows sources(encoded_.tensor(run));
    steps_.Load(run, targets);
    int64_t weight = 0;
    for (int64_t i = 0; i < targets.size(); ++i) {
      sentences_[i] = {.row = targets[i].begin,
                       .rows = targets[i].count(),
                       .token = sources[i].begin,
                       .tokens = sources[i].count(),
                       .weight = weight};
      weight += targets[i].count() * sources[i].count();
    }
    return {.sentences = sentences_.Send(run),
            .all = {.tokens = encoded_.shape(run)[0],
                    .width = sizes_.width,
                    .key_width = sizes_.key_width,
                    .encoded = encoded_(run),
                    .keys = keys_(run),
                    .score_weight = score_weight_(run)}};
  }

  LstmCell<T> Lstm(const T* bias) const {
    return {.size = sizes_.hidden,
            .gate = RecurrentActivation::kSigmoid,
            .cell = RecurrentActivation::kTanh,
            .candidate = RecurrentActivation::kTanh,
            .order = {.candidate = 3, .input = 0, .forget = 1, .output = 2},
            .bias = bias};
  }
  GruCell<T> Gru(const T* bias) const {
    return {.size = sizes_.hidden,
            .gate = RecurrentActivation::kSigmoid,
            .candidate = RecurrentActivation::kTanh,
            .bias = bias};
  }
  int attention_threads() const { return AttentionThreads(sizes_.width, sizes_.key_width); }

  Sizes sizes_;
  bool is_lstm_;
  bool attends_before_;
  T forget_bias_;
  CudaTimeSteps steps_;
  CudaEntries<DecodedSentence> sentences_;
  CudaGruWeights<T> gru_;
  CudaStepProduct<T> lstm_product_;
  CudaStepProduct<T> query_product_;
  CudaStepProduct<T> context_product_;
  bool adds_context_;
  In<T> input_;
  In<T> encoded_;
  In<T> keys_;
  In<T> h0_;
  In<T> c0_;
  In<T> weight_;
  In<T> context_weight_;
  In<T> bias_;
  In<T> query_weight_;
  In<T> score_weight_;

 private:
  // Of a step's rows times a matrix [from, to], or for the gradient times its transpose.
  static CudaProductShape ShapeOf(int64_t from, int64_t to, bool is_gradient) {
    if (is_gradient)
      return {.transpose_b = true, .n = from, .k = to, .lda = to, .ldb = to, .ldc = from};
    return {.n = to, .k = from, .lda = from, .ldb = to, .ldc = to};
  }
};

template <typename T>
class AttentionDecoderForwardKernel final : public DecoderKernel<T> {
 public:
  explicit AttentionDecoderForwardKernel(PrepareContext& context)
      : DecoderKernel<T>(context, /*is_gradient=*/false),
        query_bias_(context, "QueryBias"),
        hidden_(context, "Hidden"),
        context_(context, "Context"),
        cell_(context, "Cell"),
        weights_(context, "AttentionWeights"),
        batch_gate_(context, "BatchGate"),
        batch_query_(context, "BatchQuery"),
        batch_activated_(context, "BatchCellPreAct"),
        states_(RequestDeviceNumbers<T>(context, sizes_.sentences, sizes_.hidden)),
        contexts_(RequestDeviceNumbers<T>(context, sizes_.sentences, sizes_.width)),
        gates_(RequestDeviceNumbers<T>(context, sizes_.sentences, sizes_.gates)),
        queries_(RequestDeviceNumbers<T>(context, sizes_.sentences, sizes_.key_width)),
        reset_(RequestDeviceNumbers<T>(context, sizes_.sentences, sizes_.hidden)),
        cells_(RequestDeviceNumbers<T>(context, is_lstm_ && !cell_.is_there() ? sizes_.rows : 0,
                                       sizes_.hidden)),
        step_weights_(RequestDeviceNumbers<T>(context, weights_.is_there() ? 0 : sizes_.tokens, 1)),
        space_(RequestProductSpace(context, this->gru_, this->lstm_product_, this->query_product_,
                                   this->context_product_)) {}

  void Run(const KernelContext& run) override {
    const Attended<T> seen = this->Load(run);
    T* states = Numbers<T>(run, states_);
    LaunchLoadStates(run, steps_.on_device(), this->h0_(run), steps_.count(), sizes_.hidden,
                     states);
    const AttendStep<T> attend = AttendOf(run, seen);
    const LstmForwardStep<T> lstm = LstmOf(run);
    const GruForwardStep<T> gru = GruOf(run);
    const T* weight = this->weight_(run);
    T* gates = Numbers<T>(run, gates_);
    const bool adds = this->adds_context_;
    steps_.ForEach([&](const CudaStep& step) {
      if (this->attends_before_) Attend(run, step, attend);
      if (adds) {
        this->context_product_.Run(run, step.count, attend.contexts, this->context_weight_(run),
                                   false, gates, space_);
      }
      if (is_lstm_) {
        this->lstm_product_.Run(run, step.count, states, weight, adds, gates, space_);
        LaunchLstmForward(run, step, lstm);
      } else {
        this->gru_.Forward(run, step, gru, weight, adds, space_);
      }
      if (!this->attends_before_) Attend(run, step, attend);
    });
  }

 private:
  AttendStep<T> AttendOf(const KernelContext& run, const Attended<T>& seen) const {
    T* queries = Numbers<T>(run, queries_);
    return {.seen = seen,
            .query_sums = this->query_weight_.is_there() ? queries : Numbers<T>(run, states_),
            .query_bias = query_bias_(run),
            .queries = queries,
            .batch_queries = batch_query_(run),
            .weights = weights_.is_there() ? weights_(run) : Numbers<T>(run, step_weights_),
            .has_step_weights = !weights_.is_there(),
            .contexts = Numbers<T>(run, contexts_),
            .row_contexts = context_(run)};
  }

  LstmForwardStep<T> LstmOf(const KernelContext& run) const {
    LstmForwardStep<T> args;
    if (!is_lstm_) return args;
    args.cell = this->Lstm(this->bias_(run));
    args.forget_bias = this->forget_bias_;
    args.input = this->input_(run);
    args.product = Numbers<T>(run, gates_);
    args.c0 = this->c0_(run);
    args.states = Numbers<T>(run, states_);
    args.hidden = hidden_(run);
    args.cells = cell_.is_there() ? cell_(run) : Numbers<T>(run, cells_);
    args.batch_gates = batch_gate_(run);
    args.batch_activated = batch_activated_(run);
    return args;
  }

  GruForwardStep<T> GruOf(const KernelContext& run) const {
    GruForwardStep<T> args;
    args.cell = this->Gru(this->bias_(run));
    args.input = this->input_(run);
    args.before = args.states = Numbers<T>(run, states_);
    args.gates = Numbers<T>(run, gates_);
    args.reset = Numbers<T>(run, reset_);
    args.hidden = hidden_(run);
    args.batch_gates = batch_gate_(run);
    return args;
  }

  // Computes the contexts of a step, given the states.
  void Attend(const KernelContext& run, const CudaStep& step, const AttendStep<T>& args) const {
    if (this->query_weight_.is_there()) {
      this->query_product_.Run(run, step.count, Numbers<T>(run, states_), this->query_weight_(run),
                               false, args.queries, space_);
    }
    AttendRows<T>
        <<<CudaBlocks(step.count), this->attention_threads(), 0, StreamOf(run)>>>(step, args);
    CheckLaunch("attention of a decoder");
  }

  using DecoderKernel<T>::sizes_;
  using DecoderKernel<T>::is_lstm_;
  using DecoderKernel<T>::steps_;
  In<T> query_bias_;
  Out<T> hidden_;
  Out<T> context_;
  Out<T> cell_;
  Out<T> weights_;
  Out<T> batch_gate_;
  Out<T> batch_query_;
  Out<T> batch_activated_;
  // Workspaces.
  int states_;
  int contexts_;
  int gates_;
  int queries_;
  int reset_;
  int cells_;
  int step_weights_;
  int space_;
};

template <typename T>
class AttentionDecoderGradKernel final : public DecoderKernel<T> {
 public:
  explicit AttentionDecoderGradKernel(PrepareContext& context)
      : DecoderKernel<T>(context, /*is_gradient=*/true),
        hidden_(context, "Hidden"),
        context_(context, "Context"),
        cell_(context, "Cell"),
        weights_(context, "AttentionWeights"),
        batch_gate_(context, "BatchGate"),
        batch_query_(context, "BatchQuery"),
        batch_activated_(context, "BatchCellPreAct"),
        hidden_grad_(context, "Hidden@GRAD"),
        context_grad_(context, "Context@GRAD"),
        cell_grad_(context, "Cell@GRAD"),
        weights_grad_(context, "AttentionWeights@GRAD"),
        input_grad_(context, "Input@GRAD"),
        encoded_grad_(context, "Encoded@GRAD"),
        keys_grad_(context, "Keys@GRAD"),
        h0_grad_(context, "H0@GRAD"),
        c0_grad_(context, "C0@GRAD"),
        weight_grad_(context, "Weight@GRAD"),
        context_weight_grad_(context, "ContextWeight@GRAD"),
        bias_grad_(context, "Bias@GRAD"),
        query_weight_grad_(context, "QueryWeight@GRAD"),
        query_bias_grad_(context, "QueryBias@GRAD"),
        score_weight_grad_(context, "ScoreWeight@GRAD"),
        wants_before_(weight_grad_.is_there() ||
                      (query_weight_grad_.is_there() && this->attends_before_)),
        wants_after_(query_weight_grad_.is_there() && !this->attends_before_),
        tokens_(SendLevel(context, "Encoded")),
        gru_gradient_(RowsFor(!is_lstm_ && weight_grad_.is_there()), sizes_.hidden),
        lstm_gradient_(RowsFor(is_lstm_ && weight_grad_.is_there()), sizes_.hidden, sizes_.hidden,
                       sizes_.gates, sizes_.gates),
        context_gradient_(RowsFor(context_weight_grad_.is_there()), sizes_.width, sizes_.width,
                          sizes_.gates, sizes_.gates),
        query_gradient_(RowsFor(query_weight_grad_.is_there()), sizes_.hidden, sizes_.hidden,
                        sizes_.key_width, sizes_.key_width),
        next_(Request(context, sizes_.sentences, sizes_.hidden)),
        next_cell_(Request(context, is_lstm_ ? sizes_.sentences : 0, sizes_.hidden)),
        reset_grad_(Request(context, is_lstm_ ? 0 : sizes_.sentences, sizes_.hidden)),
        contexts_(Request(context, sizes_.sentences, sizes_.width)),
        scores_(Request(context, sizes_.tokens, 1)),
        score_weights_(Request(context, score_weight_grad_.is_there() ? sizes_.sentences : 0,
                               sizes_.key_width)),
        row_contexts_(Request(context, RowsFor(encoded_grad_.is_there()), sizes_.width)),
        // The products of the last steps may read after their rows.
        gates_(Request(context, sizes_.rows + sizes_.sentences, sizes_.gates)),
        queries_(Request(context, sizes_.rows + sizes_.sentences, sizes_.key_width)),
        before_(Request(context, RowsFor(wants_before_), sizes_.hidden)),
        after_(Request(context, RowsFor(wants_after_), sizes_.hidden)),
        reset_(Request(context, RowsFor(!is_lstm_ && weight_grad_.is_there()), sizes_.hidden)),
        batch_contexts_(Request(context, RowsFor(context_weight_grad_.is_there()), sizes_.width)),
        space_(RequestProductSpace(context, this->gru_, this->lstm_product_, this->query_product_,
                                   this->context_product_, gru_gradient_, lstm_gradient_,
                                   context_gradient_, query_gradient_)) {}

  void Run(const KernelContext& run) override {
    const Attended<T> seen = this->Load(run);
    if (keys_grad_.is_there()) {
      Tensor& keys_grad = keys_grad_.tensor(run);
      FillBytesOnDevice(run, keys_grad.raw_data(), 0, keys_grad.byte_count());
    }
    const AttendBackwardStep<T> attend = AttendOf(run, seen);
    const LstmBackwardStep<T> lstm = LstmOf(run);
    const GruBackwardStep<T> gru = GruOf(run);
    const T* weight = this->weight_(run);
    T* next = Numbers<T>(run, next_);
    T* gates = Numbers<T>(run, gates_);
    int64_t used = 0;  // sequences that have rows
    steps_.ForEachBackwards([&](const CudaStep& step) {
      used = step.count;
      if (!this->attends_before_) AttendBackward(run, step, attend);
      if (is_lstm_) {
        LaunchLstmBackward(run, step, lstm);
        this->lstm_product_.Run(run, step.count, gates + step.first * sizes_.gates, weight, false,
                                next, space_);
      } else {
        this->gru_.Backward(run, step, gru, weight, Numbers<T>(run, reset_grad_),
                            /*wants_before=*/true, space_);
      }
      if (!this->attends_before_) return;
      this->context_product_.Run(run, step.count, gates + step.first * sizes_.gates,
                                 this->context_weight_(run), false, attend.contexts, space_);
      AttendBackward(run, step, attend);
    });
    if (h0_grad_.is_there()) StoreStart(run, next, used, h0_grad_);
    if (c0_grad_.is_there()) StoreStart(run, lstm.next_cell, used, c0_grad_);
    WriteWeightGradients(run, attend, gru, lstm, used);
    if (encoded_grad_.is_there()) WriteEncodedGradient(run, seen);
  }

 private:
  static int Request(PrepareContext& context, int64_t rows, int64_t columns) {
    return RequestDeviceNumbers<T>(context, rows, columns);
  }
  int64_t RowsFor(bool is_wanted) const { return is_wanted ? sizes_.rows : 0; }
  // Returns nullptr if the workspace isn't wanted.
  static T* NumbersIf(const KernelContext& run, bool is_wanted, int workspace) {
    return is_wanted ? Numbers<T>(run, workspace) : nullptr;
  }

  AttendBackwardStep<T> AttendOf(const KernelContext& run, const Attended<T>& seen) const {
    return {.seen = seen,
            .batch_queries = batch_query_(run),
            .weights = weights_(run),
            .context_grad = context_grad_(run),
            .weights_grad = weights_grad_(run),
            .has_contexts = this->adds_context_,
            .contexts = Numbers<T>(run, contexts_),
            .row_contexts = NumbersIf(run, encoded_grad_.is_there(), row_contexts_),
            .scores = Numbers<T>(run, scores_),
            .batch_queries_grad = Numbers<T>(run, queries_),
            .next = Numbers<T>(run, next_),
            .hidden_width = sizes_.hidden,
            .adds_queries = !this->query_weight_.is_there(),
            .clears_next = !this->attends_before_,
            .keys_grad = keys_grad_(run),
            .score_weights = NumbersIf(run, score_weight_grad_.is_there(), score_weights_),
            .context = context_(run),
            .batch_contexts = NumbersIf(run, context_weight_grad_.is_there(), batch_contexts_),
            .hidden = hidden_(run),
            .batch_hidden = NumbersIf(run, wants_after_, after_)};
  }

  LstmBackwardStep<T> LstmOf(const KernelContext& run) const {
    LstmBackwardStep<T> args;
    if (!is_lstm_) return args;
    args.cell = this->Lstm(this->bias_(run));
    args.cells = cell_(run);
    args.c0 = this->c0_(run);
    args.hidden = hidden_(run);
    args.h0 = this->h0_(run);
    args.batch_gates = batch_gate_(run);
    args.batch_activated = batch_activated_(run);
    args.hidden_grad = hidden_grad_(run);
    args.cell_grad = cell_grad_(run);
    args.next_hidden = Numbers<T>(run, next_);
    args.has_all_next = !this->attends_before_;
    args.next_cell = Numbers<T>(run, next_cell_);
    args.batch_gates_grad = Numbers<T>(run, gates_);
    args.input_grad = input_grad_(run);
    args.batch_before = NumbersIf(run, wants_before_, before_);
    return args;
  }

  GruBackwardStep<T> GruOf(const KernelContext& run) const {
    GruBackwardStep<T> args;
    if (is_lstm_) return args;
    args.cell = this->Gru(this->bias_(run));
    args.hidden = hidden_(run);
    args.h0 = this->h0_(run);
    args.batch_gates = batch_gate_(run);
    args.hidden_grad = hidden_grad_(run);
    args.next = Numbers<T>(run, next_);
    args.has_all_next = !this->attends_before_;
    args.reset_grad = Numbers<T>(run, reset_grad_);
    args.batch_gates_grad = Numbers<T>(run, gates_);
    args.input_grad = input_grad_(run);
    args.batch_before = NumbersIf(run, wants_before_, before_);
    args.batch_reset = NumbersIf(run, weight_grad_.is_there(), reset_);
    return args;
  }

  // Adds the gradient of the states that the queries of a step are made of.
  void AttendBackward(const KernelContext& run, const CudaStep& step,
                      const AttendBackwardStep<T>& args) const {
    AttendBackwardRows<T>
        <<<CudaBlocks(step.count), this->attention_threads(), 0, StreamOf(run)>>>(step, args);
    CheckLaunch("gradient of the attention of a decoder");
    if (!this->query_weight_.is_there()) return;
    this->query_product_.Run(run, step.count,
                             args.batch_queries_grad + step.first * sizes_.key_width,
                             this->query_weight_(run), true, args.next, space_);
  }

  void StoreStart(const KernelContext& run, const T* states, int64_t used,
                  const Out<T>& output) const {
    LaunchStoreStates(run, steps_.on_device(), states, used, steps_.count(), sizes_.hidden,
                      output(run));
  }

  void WriteWeightGradients(const KernelContext& run, const AttendBackwardStep<T>& attend,
                            const GruBackwardStep<T>& gru, const LstmBackwardStep<T>& lstm,
                            int64_t used) const {
    const int64_t rows = hidden_.shape(run)[0];
    T* gates = Numbers<T>(run, gates_);
    T* queries = attend.batch_queries_grad;
    const auto clear = [&](T* matrix, int64_t width) {
      if (matrix != nullptr) ClearRows(run, matrix, rows, sizes_.rows, width);
    };
    T* before = NumbersIf(run, wants_before_, before_);
    clear(gates, sizes_.gates);
    clear(queries, sizes_.key_width);
    clear(before, sizes_.hidden);
    clear(attend.batch_hidden, sizes_.hidden);
    clear(attend.batch_contexts, sizes_.width);
    clear(gru.batch_reset, sizes_.hidden);
    if (weight_grad_.is_there() && is_lstm_) {
      lstm_gradient_.Run(run, lstm.batch_before, gates, weight_grad_(run), space_);
    } else if (weight_grad_.is_there()) {
      gru_gradient_.Run(run, gru.batch_before, gru.batch_reset, gates, weight_grad_(run), space_);
    }
    if (context_weight_grad_.is_there()) {
      context_gradient_.Run(run, attend.batch_contexts, gates, context_weight_grad_(run), space_);
    }
    if (query_weight_grad_.is_there()) {
      query_gradient_.Run(run, wants_after_ ? attend.batch_hidden : before, queries,
                          query_weight_grad_(run), space_);
    }
    WriteSum(run, bias_grad_, gates, rows, sizes_.gates);
    WriteSum(run, query_bias_grad_, queries, rows, sizes_.key_width);
    WriteSum(run, score_weight_grad_, attend.score_weights, used, sizes_.key_width);
  }

  void WriteSum(const KernelContext& run, const Out<T>& output, const T* matrix, int64_t rows,
                int64_t columns) const {
    if (output.is_there()) LaunchSumColumns(run, matrix, rows, columns, columns, output(run));
  }

  void WriteEncodedGradient(const KernelContext& run, const Attended<T>& seen) {
    if (encoded_grad_.count(run) == 0) return;
    const int64_t count = encoded_grad_.shape(run)[0];
    const RowThreads threads(count, sizes_.width);
    SumContexts<T><<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(
        tokens_->Send(run, this->encoded_.tensor(run)), seen.sentences, weights_(run),
        Numbers<T>(run, row_contexts_), count, sizes_.width, threads.of_row, encoded_grad_(run));
    CheckLaunch("gradient of what a decoder looks at");
  }

  using DecoderKernel<T>::sizes_;
  using DecoderKernel<T>::is_lstm_;
  using DecoderKernel<T>::steps_;
  In<T> hidden_;
  In<T> context_;
  In<T> cell_;
  In<T> weights_;
  In<T> batch_gate_;
  In<T> batch_query_;
  In<T> batch_activated_;
  In<T> hidden_grad_;
  In<T> context_grad_;
  In<T> cell_grad_;
  In<T> weights_grad_;
  Out<T> input_grad_;
  Out<T> encoded_grad_;
  Out<T> keys_grad_;
  Out<T> h0_grad_;
  Out<T> c0_grad_;
  Out<T> weight_grad_;
  Out<T> context_weight_grad_;
  Out<T> bias_grad_;
  Out<T> query_weight_grad_;
  Out<T> query_bias_grad_;
  Out<T> score_weight_grad_;
  bool wants_before_;  // the states before all rows
  bool wants_after_;   // the states after them, which queries are made of
  std::shared_ptr<CudaLevel> tokens_;
  CudaGruWeightGradient<T> gru_gradient_;
  CudaSumProduct<T> lstm_gradient_;
  CudaSumProduct<T> context_gradient_;
  CudaSumProduct<T> query_gradient_;
  // Workspaces. Of the sequences of a step:
  int next_;
  int next_cell_;
  int reset_grad_;
  int contexts_;
  int scores_;
  int score_weights_;
  // Of all rows, in their order:
  int row_contexts_;
  // Of all rows, in batch order:
  int gates_;
  int queries_;
  int before_;
  int after_;
  int reset_;
  int batch_contexts_;
  int space_;
};

template <typename T>
void AddAttentionDecoderKernels(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "attention_decoder", PrepareKernel<AttentionDecoderForwardKernel<T>>);
  AddCudaKernel<T>(registry, "attention_decoder_grad",
                   PrepareKernel<AttentionDecoderGradKernel<T>>);
}

}  // namespace

void RegisterAttentionDecoderCuda(OpRegistry& registry) {
  AddAttentionDecoderKernels<float>(registry);
  AddAttentionDecoderKernels<double>(registry);
}

}  // namespace skiff
