// CUDA kernels of attention_decoder; attention_decoder.cc has the formulas. A time step is the
// products with the weights, the launches of its cell (cuda_gru_steps.cuh, cuda_lstm_steps.cuh) and
// one for the attention. What the gradients of weights are products of lies in batch order.
#include <algorithm>
#include <memory>

#include "framework/op/registry.h"
#include "operators/sequence/kernels/attention_decoder_layer.h"
#include "operators/sequence/kernels/cuda_attention.cuh"
#include "operators/sequence/kernels/cuda_gru_steps.cuh"
#include "operators/sequence/kernels/cuda_lstm_steps.cuh"

namespace skiff {
namespace {

// What the kernels of the op and of its gradient have in common.
template <typename T>
class DecoderKernel : public Kernel {
 public:
  bool TakesFewerRows() const override { return true; }

 protected:
  DecoderKernel(PrepareContext& context, bool is_gradient)
      : sizes_(context),
        attends_before_(AttendsBefore(context)),
        time_(context, sizes_.most.sequences, /*is_reverse=*/false),
        sentences_(context, sizes_.most.sequences),
        query_product_(context.HasInput("QueryWeight") ? sizes_.most.sequences : 0,
                       StepShape(sizes_.hidden, sizes_.key_width, is_gradient)),
        context_product_(attends_before_ ? sizes_.most.sequences : 0,
                         StepShape(sizes_.width, sizes_.gates, is_gradient)),
        // There is no product with a context of no numbers.
        adds_context_(attends_before_ && sizes_.width > 0),
        input_(context, "Input"),
        encoded_(context, "Encoded"),
        keys_(context, "Keys"),
        h0_(context, "H0"),
        context_weight_(context, "ContextWeight"),
        query_weight_(context, "QueryWeight"),
        score_weight_(context, "ScoreWeight") {}

  // Takes the sequences of a run. Returns what its rows see.
  Attended<T> Load(const KernelContext& run) {
    const SequenceRows targets(input_.tensor(run));
    const SequenceRows sources(encoded_.tensor(run));
    time_.Load(run, targets);
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

  int attention_threads() const { return AttentionThreads(sizes_.width, sizes_.key_width); }

  DecoderSizes sizes_;
  bool attends_before_;
  CudaTimeSteps time_;
  CudaEntries<DecodedSentence> sentences_;
  CudaStepProduct<T> query_product_;
  CudaStepProduct<T> context_product_;
  bool adds_context_;
  In<T> input_;
  In<T> encoded_;
  In<T> keys_;
  In<T> h0_;
  In<T> context_weight_;
  In<T> query_weight_;
  In<T> score_weight_;
};

// Steps: of the cell.
template <typename T, typename Steps>
class AttentionDecoderForwardKernel final : public DecoderKernel<T> {
 public:
  AttentionDecoderForwardKernel(PrepareContext& context, const typename Steps::Layer& layer)
      : DecoderKernel<T>(context, /*is_gradient=*/false),
        steps_(context, layer),
        query_bias_(context, "QueryBias"),
        hidden_(context, "Hidden"),
        context_(context, "Context"),
        weights_(context, "AttentionWeights"),
        batch_query_(context, "BatchQuery"),
        states_(context, sizes_.most.sequences, sizes_.hidden),
        contexts_(context, sizes_.most.sequences, sizes_.width),
        queries_(context, sizes_.most.sequences, sizes_.key_width),
        step_weights_(context, weights_.is_there() ? 0 : sizes_.tokens),
        space_(RequestProductSpace(context, steps_, this->query_product_, this->context_product_)) {
  }

  void Run(const KernelContext& run) override {
    const Attended<T> seen = this->Load(run);
    T* states = states_(run);
    LaunchLoadStates(run, this->time_, this->h0_(run), sizes_.hidden, states);
    const AttendStep<T> attend = AttendOf(run, seen);
    steps_.Begin(run, {this->input_(run), hidden_(run), states});
    this->time_.ForEach([&](const CudaStep& step) {
      if (this->attends_before_) Attend(run, step, attend);
      if (this->adds_context_) {
        this->context_product_.Run(run, step.count, attend.contexts, this->context_weight_(run),
                                   false, steps_.Gates(run), space_);
      }
      steps_.Run(run, step, {.adds = this->adds_context_}, space_);
      if (!this->attends_before_) Attend(run, step, attend);
    });
  }

 private:
  AttendStep<T> AttendOf(const KernelContext& run, const Attended<T>& seen) const {
    T* queries = queries_(run);
    return {.seen = seen,
            .query_sums = this->query_weight_.is_there() ? queries : states_(run),
            .query_bias = query_bias_(run),
            .queries = queries,
            .batch_queries = batch_query_(run),
            .weights = weights_.is_there() ? weights_(run) : step_weights_(run),
            .has_step_weights = !weights_.is_there(),
            .contexts = contexts_(run),
            .row_contexts = context_(run)};
  }

  // Computes the contexts of a step, given the states.
  void Attend(const KernelContext& run, const CudaStep& step, const AttendStep<T>& args) const {
    if (this->query_weight_.is_there()) {
      this->query_product_.Run(run, step.count, states_(run), this->query_weight_(run), false,
                               args.queries, space_);
    }
    AttendRows<T>
        <<<CudaBlocks(step.count), this->attention_threads(), 0, StreamOf(run)>>>(step, args);
    CheckLaunch("attention of a decoder");
  }

  using DecoderKernel<T>::sizes_;
  Steps steps_;
  In<T> query_bias_;
  Out<T> hidden_;
  Out<T> context_;
  Out<T> weights_;
  Out<T> batch_query_;
  // Of the sequences of a step:
  Workspace<T> states_;
  Workspace<T> contexts_;
  Workspace<T> queries_;
  Workspace<T> step_weights_;
  int space_;
};

template <typename T, typename Steps>
class AttentionDecoderGradKernel final : public DecoderKernel<T> {
 public:
  AttentionDecoderGradKernel(PrepareContext& context, const typename Steps::Layer& layer)
      : DecoderKernel<T>(context, /*is_gradient=*/true),
        steps_(context, layer),
        hidden_(context, "Hidden"),
        context_(context, "Context"),
        weights_(context, "AttentionWeights"),
        batch_gate_(context, "BatchGate"),
        batch_query_(context, "BatchQuery"),
        hidden_grad_(context, "Hidden@GRAD"),
        context_grad_(context, "Context@GRAD"),
        weights_grad_(context, "AttentionWeights@GRAD"),
        input_grad_(context, "Input@GRAD"),
        encoded_grad_(context, "Encoded@GRAD"),
        keys_grad_(context, "Keys@GRAD"),
        h0_grad_(context, "H0@GRAD"),
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
        context_gradient_(RowsFor(context_weight_grad_.is_there()), sizes_.width, sizes_.width,
                          sizes_.gates, sizes_.gates),
        query_gradient_(RowsFor(query_weight_grad_.is_there()), sizes_.hidden, sizes_.hidden,
                        sizes_.key_width, sizes_.key_width),
        next_(context, sizes_.most.sequences, sizes_.hidden),
        contexts_(context, sizes_.most.sequences, sizes_.width),
        scores_(context, sizes_.tokens),
        score_weights_(context, score_weight_grad_.is_there() ? sizes_.most.sequences : 0,
                       sizes_.key_width),
        row_contexts_(context, RowsFor(encoded_grad_.is_there()), sizes_.width),
        // The products of the last steps may read after their rows.
        gates_(context, sizes_.most.rows + sizes_.most.sequences, sizes_.gates),
        queries_(context, sizes_.most.rows + sizes_.most.sequences, sizes_.key_width),
        before_(context, RowsFor(wants_before_), sizes_.hidden),
        after_(context, RowsFor(wants_after_), sizes_.hidden),
        batch_contexts_(context, RowsFor(context_weight_grad_.is_there()), sizes_.width),
        space_(RequestProductSpace(context, steps_, this->query_product_, this->context_product_,
                                   context_gradient_, query_gradient_)) {}

  void Run(const KernelContext& run) override {
    const Attended<T> seen = this->Load(run);
    if (keys_grad_.is_there()) {
      Tensor& keys_grad = keys_grad_.tensor(run);
      FillBytesOnDevice(run, keys_grad.raw_data(), 0, keys_grad.byte_count());
    }
    const AttendBackwardStep<T> attend = AttendOf(run, seen);
    T* gates = gates_(run);
    steps_.Begin(run, {.hidden = hidden_(run),
                       .h0 = this->h0_(run),
                       .batch_gates = batch_gate_(run),
                       .hidden_grad = hidden_grad_(run),
                       .next = attend.next,
                       .has_all_next = !this->attends_before_,
                       .batch_gates_grad = gates,
                       .input_grad = input_grad_(run),
                       .batch_before = DataIf(run, wants_before_, before_)});
    int64_t used = 0;  // sequences that have rows
    this->time_.ForEachBackwards([&](const CudaStep& step) {
      used = step.count;
      if (!this->attends_before_) AttendBackward(run, step, attend);
      steps_.Run(run, step, /*wants_before=*/true, space_);
      if (!this->attends_before_) return;
      this->context_product_.Run(run, step.count, gates + step.first * sizes_.gates,
                                 this->context_weight_(run), false, attend.contexts, space_);
      AttendBackward(run, step, attend);
    });
    if (h0_grad_.is_there())
      LaunchStoreStates(run, this->time_, attend.next, used, sizes_.hidden, h0_grad_(run));
    steps_.End(run, this->time_, used);
    WriteWeightGradients(run, attend, used);
    if (encoded_grad_.is_there()) WriteEncodedGradient(run, seen);
  }

 private:
  int64_t RowsFor(bool is_wanted) const { return is_wanted ? sizes_.most.rows : 0; }
  // Returns nullptr if the workspace isn't wanted.
  static T* DataIf(const KernelContext& run, bool is_wanted, const Workspace<T>& workspace) {
    return is_wanted ? workspace(run) : nullptr;
  }

  AttendBackwardStep<T> AttendOf(const KernelContext& run, const Attended<T>& seen) const {
    return {.seen = seen,
            .batch_queries = batch_query_(run),
            .weights = weights_(run),
            .context_grad = context_grad_(run),
            .weights_grad = weights_grad_(run),
            .has_contexts = this->adds_context_,
            .contexts = contexts_(run),
            .row_contexts = DataIf(run, encoded_grad_.is_there(), row_contexts_),
            .scores = scores_(run),
            .batch_queries_grad = queries_(run),
            .next = next_(run),
            .hidden_width = sizes_.hidden,
            .adds_queries = !this->query_weight_.is_there(),
            .clears_next = !this->attends_before_,
            .keys_grad = keys_grad_(run),
            .score_weights = DataIf(run, score_weight_grad_.is_there(), score_weights_),
            .context = context_(run),
            .batch_contexts = DataIf(run, context_weight_grad_.is_there(), batch_contexts_),
            .hidden = hidden_(run),
            .batch_hidden = DataIf(run, wants_after_, after_)};
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

  void WriteWeightGradients(const KernelContext& run, const AttendBackwardStep<T>& attend,
                            int64_t used) const {
    const int64_t rows = hidden_.shape(run)[0];
    T* gates = gates_(run);
    T* queries = attend.batch_queries_grad;
    const auto clear = [&](T* matrix, int64_t width) {
      if (matrix != nullptr) ClearRows(run, matrix, rows, sizes_.most.rows, width);
    };
    T* before = DataIf(run, wants_before_, before_);
    clear(gates, sizes_.gates);
    clear(queries, sizes_.key_width);
    clear(before, sizes_.hidden);
    clear(attend.batch_hidden, sizes_.hidden);
    clear(attend.batch_contexts, sizes_.width);
    if (weight_grad_.is_there())
      steps_.SumWeight(run, before, gates, rows, weight_grad_(run), space_);
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
        row_contexts_(run), count, sizes_.width, threads.of_row, encoded_grad_(run));
    CheckLaunch("gradient of what a decoder looks at");
  }

  using DecoderKernel<T>::sizes_;
  Steps steps_;
  In<T> hidden_;
  In<T> context_;
  In<T> weights_;
  In<T> batch_gate_;
  In<T> batch_query_;
  In<T> hidden_grad_;
  In<T> context_grad_;
  In<T> weights_grad_;
  Out<T> input_grad_;
  Out<T> encoded_grad_;
  Out<T> keys_grad_;
  Out<T> h0_grad_;
  Out<T> weight_grad_;
  Out<T> context_weight_grad_;
  Out<T> bias_grad_;
  Out<T> query_weight_grad_;
  Out<T> query_bias_grad_;
  Out<T> score_weight_grad_;
  bool wants_before_;  // the states before all rows
  bool wants_after_;   // the states after them, which queries are made of
  std::shared_ptr<CudaLevel> tokens_;
  CudaSumProduct<T> context_gradient_;
  CudaSumProduct<T> query_gradient_;
  // Of the sequences of a step:
  Workspace<T> next_;
  Workspace<T> contexts_;
  Workspace<T> scores_;
  Workspace<T> score_weights_;
  // Of all rows, in their order:
  Workspace<T> row_contexts_;
  // Of all rows, in batch order:
  Workspace<T> gates_;
  Workspace<T> queries_;
  Workspace<T> before_;
  Workspace<T> after_;
  Workspace<T> batch_contexts_;
  int space_;
};

template <typename T>
void AddAttentionDecoderKernels(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "attention_decoder",
                   PrepareDecoder<T, AttentionDecoderForwardKernel, CudaLstmForwardSteps<T>,
                                  CudaGruForwardSteps<T>>);
  AddCudaKernel<T>(registry, "attention_decoder_grad",
                   PrepareDecoder<T, AttentionDecoderGradKernel, CudaLstmBackwardSteps<T>,
                                  CudaGruBackwardSteps<T>>);
}

}  // namespace

void RegisterAttentionDecoderCuda(OpRegistry& registry) {
  AddAttentionDecoderKernels<float>(registry);
  AddAttentionDecoderKernels<double>(registry);
}

}  // namespace skiff
