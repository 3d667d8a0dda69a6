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
  bool AcceptsFewerRows() const override { return true; }

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
        in_(context) {}

  // Takes the sequences of a run. Returns what its rows see.
  Attended<T> Load(const KernelContext& run) {
    const SequenceRows targets(in_.input.tensor(run));
    time_.Load(run, targets);
    ForEachSentencePair(
        targets, in_.seen.Sentences(run),
        [&](int64_t i, const RowRange& rows, const RowRange& tokens, int64_t weight) {
          sentences_[i] = {.row = rows.begin,
                           .rows = rows.count(),
                           .token = tokens.begin,
                           .tokens = tokens.count(),
                           .weight = weight};
        });
    return {.sentences = sentences_.Send(run), .all = in_.seen.AllTokens(run)};
  }

  int attention_threads() const { return AttentionThreads(sizes_.width, sizes_.key_width); }

  DecoderSizes sizes_;
  bool attends_before_;
  CudaTimeSteps time_;
  CudaEntries<DecodedSentence> sentences_;
  CudaStepProduct<T> query_product_;
  CudaStepProduct<T> context_product_;
  bool adds_context_;
  DecoderInputs<T> in_;
};

// Steps: of the cell.
template <typename T, typename Steps>
class AttentionDecoderForwardKernel final : public DecoderKernel<T> {
  static_assert(CudaForwardSteps<Steps, T>);

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
    LaunchLoadStates(run, this->time_, this->in_.h0(run), sizes_.hidden, states);
    const AttendStep<T> attend = AttendOf(run, seen);
    steps_.Begin(run, {this->in_.input(run), hidden_(run), states});
    this->time_.ForEach([&](const CudaStep& step) {
      if (this->attends_before_) Attend(run, step, attend);
      if (this->adds_context_) {
        this->context_product_.Run(run, step.count, attend.contexts, this->in_.context_weight(run),
                                   false, steps_.Gates(run), space_);
      }
      steps_.Run(run, step, this->adds_context_ ? StateProduct::kAdd : StateProduct::kSet, space_);
      if (!this->attends_before_) Attend(run, step, attend);
    });
  }

 private:
  AttendStep<T> AttendOf(const KernelContext& run, const Attended<T>& seen) const {
    T* queries = queries_(run);
    return {.seen = seen,
            .query_sums = this->in_.query_weight.is_there() ? queries : states_(run),
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
    if (this->in_.query_weight.is_there()) {
      this->query_product_.Run(run, step.count, states_(run), this->in_.query_weight(run), false,
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
  static_assert(CudaBackwardSteps<Steps, T>);

 public:
  AttentionDecoderGradKernel(PrepareContext& context, const typename Steps::Layer& layer)
      : DecoderKernel<T>(context, /*is_gradient=*/true),
        steps_(context, layer),
        args_(context),
        wants_before_(args_.of_weight.is_there() ||
                      (args_.of_query_weight.is_there() && this->attends_before_)),
        wants_after_(args_.of_query_weight.is_there() && !this->attends_before_),
        tokens_(SendLevel(context, "Encoded")),
        context_gradient_(RowsFor(args_.of_context_weight.is_there()), sizes_.width, sizes_.width,
                          sizes_.gates, sizes_.gates),
        query_gradient_(RowsFor(args_.of_query_weight.is_there()), sizes_.hidden, sizes_.hidden,
                        sizes_.key_width, sizes_.key_width),
        next_(context, sizes_.most.sequences, sizes_.hidden),
        contexts_(context, sizes_.most.sequences, sizes_.width),
        scores_(context, sizes_.tokens),
        score_weights_(context, args_.of_score_weight.is_there() ? sizes_.most.sequences : 0,
                       sizes_.key_width),
        row_contexts_(context, RowsFor(args_.of_encoded.is_there()), sizes_.width),
        // The products of the last steps may read after their rows.
        gates_(context, sizes_.most.rows + sizes_.most.sequences, sizes_.gates),
        queries_(context, sizes_.most.rows + sizes_.most.sequences, sizes_.key_width),
        before_(context, RowsFor(wants_before_), sizes_.hidden),
        after_(context, RowsFor(wants_after_), sizes_.hidden),
        batch_contexts_(context, RowsFor(args_.of_context_weight.is_there()), sizes_.width),
        space_(RequestProductSpace(context, steps_, this->query_product_, this->context_product_,
                                   context_gradient_, query_gradient_)) {}

  void Run(const KernelContext& run) override {
    const Attended<T> seen = this->Load(run);
    if (args_.of_keys.is_there()) {
      Tensor& keys_grad = args_.of_keys.tensor(run);
      FillBytesOnDevice(run, keys_grad.raw_data(), 0, keys_grad.byte_count());
    }
    const AttendBackwardStep<T> attend = AttendOf(run, seen);
    T* gates = gates_(run);
    steps_.Begin(run, {.hidden = args_.hidden(run),
                       .h0 = this->in_.h0(run),
                       .batch_gates = args_.batch_gate(run),
                       .hidden_grad = args_.of_hidden(run),
                       .next = attend.next,
                       .has_all_next = !this->attends_before_,
                       .batch_gates_grad = gates,
                       .input_grad = args_.of_input(run),
                       .batch_before = DataIf(run, wants_before_, before_)});
    int64_t used = 0;  // sequences that have rows
    this->time_.ForEachBackwards([&](const CudaStep& step) {
      used = step.count;
      if (!this->attends_before_) AttendBackward(run, step, attend);
      steps_.Run(run, step, /*wants_before=*/true, space_);
      if (!this->attends_before_) return;
      this->context_product_.Run(run, step.count, gates + step.first * sizes_.gates,
                                 this->in_.context_weight(run), false, attend.contexts, space_);
      AttendBackward(run, step, attend);
    });
    if (args_.of_h0.is_there())
      LaunchStoreStates(run, this->time_, attend.next, used, sizes_.hidden, args_.of_h0(run));
    steps_.End(run, this->time_, used);
    WriteWeightGradients(run, attend, used);
    if (args_.of_encoded.is_there()) WriteEncodedGradient(run, seen);
  }

 private:
  int64_t RowsFor(bool is_wanted) const { return is_wanted ? sizes_.most.rows : 0; }
  // Returns nullptr if the workspace isn't wanted.
  static T* DataIf(const KernelContext& run, bool is_wanted, const Workspace<T>& workspace) {
    return is_wanted ? workspace(run) : nullptr;
  }

  AttendBackwardStep<T> AttendOf(const KernelContext& run, const Attended<T>& seen) const {
    return {.seen = seen,
            .batch_queries = args_.batch_query(run),
            .weights = args_.weights(run),
            .context_grad = args_.of_context(run),
            .weights_grad = args_.of_weights(run),
            .has_contexts = this->adds_context_,
            .contexts = contexts_(run),
            .row_contexts = DataIf(run, args_.of_encoded.is_there(), row_contexts_),
            .scores = scores_(run),
            .batch_queries_grad = queries_(run),
            .next = next_(run),
            .hidden_width = sizes_.hidden,
            .adds_queries = !this->in_.query_weight.is_there(),
            .clears_next = !this->attends_before_,
            .keys_grad = args_.of_keys(run),
            .score_weights = DataIf(run, args_.of_score_weight.is_there(), score_weights_),
            .context = args_.context(run),
            .batch_contexts = DataIf(run, args_.of_context_weight.is_there(), batch_contexts_),
            .hidden = args_.hidden(run),
            .batch_hidden = DataIf(run, wants_after_, after_)};
  }

  // Adds the gradient of the states that the queries of a step are made of.
  void AttendBackward(const KernelContext& run, const CudaStep& step,
                      const AttendBackwardStep<T>& args) const {
    AttendBackwardRows<T>
        <<<CudaBlocks(step.count), this->attention_threads(), 0, StreamOf(run)>>>(step, args);
    CheckLaunch("gradient of the attention of a decoder");
    if (!this->in_.query_weight.is_there()) return;
    this->query_product_.Run(run, step.count,
                             args.batch_queries_grad + step.first * sizes_.key_width,
                             this->in_.query_weight(run), true, args.next, space_);
  }

  void WriteWeightGradients(const KernelContext& run, const AttendBackwardStep<T>& attend,
                            int64_t used) const {
    const int64_t rows = args_.hidden.shape(run)[0];
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
    if (args_.of_weight.is_there())
      steps_.SumWeight(run, before, gates, rows, args_.of_weight(run), space_);
    if (args_.of_context_weight.is_there()) {
      context_gradient_.Run(run, attend.batch_contexts, gates, args_.of_context_weight(run),
                            space_);
    }
    if (args_.of_query_weight.is_there()) {
      query_gradient_.Run(run, wants_after_ ? attend.batch_hidden : before, queries,
                          args_.of_query_weight(run), space_);
    }
    WriteSum(run, args_.of_bias, gates, rows, sizes_.gates);
    WriteSum(run, args_.of_query_bias, queries, rows, sizes_.key_width);
    WriteSum(run, args_.of_score_weight, attend.score_weights, used, sizes_.key_width);
  }

  void WriteSum(const KernelContext& run, const Out<T>& output, const T* matrix, int64_t rows,
                int64_t columns) const {
    if (output.is_there()) LaunchSumColumns(run, matrix, rows, columns, columns, output(run));
  }

  void WriteEncodedGradient(const KernelContext& run, const Attended<T>& seen) {
    if (args_.of_encoded.count(run) == 0) return;
    const int64_t count = args_.of_encoded.shape(run)[0];
    const RowThreads threads(count, sizes_.width);
    SumContexts<T><<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(
        tokens_->Send(run, this->in_.seen.encoded.tensor(run)), seen.sentences, args_.weights(run),
        row_contexts_(run), count, sizes_.width, threads.of_row, args_.of_encoded(run));
    CheckLaunch("gradient of what a decoder looks at");
  }

  using DecoderKernel<T>::sizes_;
  Steps steps_;
  DecoderGradients<T> args_;
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
