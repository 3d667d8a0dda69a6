// CUDA kernels of sequence_attention; sequence_attention.cc has the formulas. A block takes a
// sequence (cuda_attention.cuh).
#include <memory>

#include "framework/op/registry.h"
#include "operators/sequence/kernels/cuda_attention.cuh"

namespace skiff {
namespace {

template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    AttendSequences(AttendedTokens<T> all, CudaOffsets sequences, const T* queries, T* weights,
                    T* contexts) {
  for (int64_t j = blockIdx.x; j < sequences.count; j += gridDim.x) {
    const int64_t first = sequences.Begin(j);
    T* context = contexts + j * all.width;
    AttendByBlock(TokensOf(all, first, sequences.End(j) - first), queries + j * all.key_width,
                  weights + first, [&](int64_t i, T number) { context[i] = number; });
  }
}

// What the gradient reads and writes, of all sequences.
template <typename T>
struct AttendedGradient {
  const T* queries;
  const T* weights;
  const T* context_grad;
  const T* weights_grad;  // or nullptr
  T* scores;              // one for each token: scratch
  // nullptr: not wanted.
  T* query_grad;
  T* encoded_grad;
  T* keys_grad;
  T* score_weights;  // [sequences, A]: the gradient of ScoreWeight by sequence

  __host__ __device__ bool wants_scores() const {
    return query_grad != nullptr || keys_grad != nullptr || score_weights != nullptr;
  }
};

template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    AttendSequencesBackward(AttendedTokens<T> all, CudaOffsets sequences,
                            AttendedGradient<T> args) {
  for (int64_t j = blockIdx.x; j < sequences.count; j += gridDim.x) {
    const int64_t first = sequences.Begin(j);
    const AttendedTokens<T> seen = TokensOf(all, first, sequences.End(j) - first);
    const T* weights = args.weights + first;
    const T* context_grad = args.context_grad + j * seen.width;
    if (args.encoded_grad != nullptr) {
      T* encoded_grad = args.encoded_grad + first * seen.width;
      for (int64_t i = threadIdx.x; i < seen.width; i += blockDim.x) {
        const T gradient = context_grad[i];
        for (int64_t s = 0; s < seen.tokens; ++s)
          encoded_grad[s * seen.width + i] = weights[s] * gradient;
      }
    }
    if (!args.wants_scores()) continue;
    T* scores = args.scores + first;
    ScoresBackwardByBlock(seen, weights, context_grad,
                          args.weights_grad == nullptr ? nullptr : args.weights_grad + first,
                          scores);
    T* keys_grad = args.keys_grad == nullptr ? nullptr : args.keys_grad + first * seen.key_width;
    const int64_t row = j * seen.key_width;
    QueryBackwardByBlock(
        seen, args.queries + row, scores,
        [&](int64_t at, T number) {
          if (keys_grad != nullptr) keys_grad[at] = number;
        },
        [&](int64_t i, T query, T score_weight) {
          if (args.query_grad != nullptr) args.query_grad[row + i] = query;
          if (args.score_weights != nullptr) args.score_weights[row + i] = score_weight;
        });
  }
}

// What the kernels of the op and of its gradient have in common.
template <typename T>
class AttentionKernel : public Kernel {
 public:
  bool TakesFewerRows() const override { return true; }

 protected:
  explicit AttentionKernel(const PrepareContext& context)
      : width_(RowWidth(context, "Encoded")),
        key_width_(RowWidth(context, "Keys")),
        level_(SendLevel(context, "Encoded")),
        query_(context, "Query"),
        encoded_(context, "Encoded"),
        keys_(context, "Keys"),
        score_weight_(context, "ScoreWeight") {}

  CudaOffsets Sequences(const KernelContext& run) const {
    return level_->Send(run, encoded_.tensor(run));
  }
  const T* Queries(const KernelContext& run) const { return query_(run); }
  AttendedTokens<T> Seen(const KernelContext& run) const {
    return {.tokens = encoded_.shape(run)[0],
            .width = width_,
            .key_width = key_width_,
            .encoded = encoded_(run),
            .keys = keys_(run),
            .score_weight = score_weight_(run)};
  }
  int threads() const { return AttentionThreads(width_, key_width_); }

  int64_t width_;
  int64_t key_width_;

 private:
  std::shared_ptr<CudaLevel> level_;
  In<T> query_;
  In<T> encoded_;
  In<T> keys_;
  In<T> score_weight_;
};

template <typename T>
class SequenceAttentionForwardKernel final : public AttentionKernel<T> {
 public:
  explicit SequenceAttentionForwardKernel(const PrepareContext& context)
      : AttentionKernel<T>(context),
        context_(context, "Context"),
        weights_(context, "AttentionWeights") {}

  void Run(const KernelContext& run) override {
    const CudaOffsets sequences = this->Sequences(run);
    if (sequences.count == 0) return;
    AttendSequences<T><<<CudaBlocks(sequences.count), this->threads(), 0, StreamOf(run)>>>(
        this->Seen(run), sequences, this->Queries(run), weights_(run), context_(run));
    CheckLaunch("sequence_attention");
  }

 private:
  Out<T> context_;
  Out<T> weights_;
};

template <typename T>
class SequenceAttentionGradKernel final : public AttentionKernel<T> {
 public:
  explicit SequenceAttentionGradKernel(PrepareContext& context)
      : AttentionKernel<T>(context),
        weights_(context, "AttentionWeights"),
        context_grad_(context, "Context@GRAD"),
        weights_grad_(context, "AttentionWeights@GRAD"),
        query_grad_(context, "Query@GRAD"),
        encoded_grad_(context, "Encoded@GRAD"),
        keys_grad_(context, "Keys@GRAD"),
        score_weight_grad_(context, "ScoreWeight@GRAD"),
        scores_(RequestDeviceNumbers<T>(context, context.Input("Encoded").shape[0], 1)),
        score_weights_(RequestDeviceNumbers<T>(
            context, score_weight_grad_.is_there() ? context.Input("Query").shape[0] : 0,
            this->key_width_)) {}

  void Run(const KernelContext& run) override {
    const CudaOffsets sequences = this->Sequences(run);
    T* score_weights = score_weight_grad_.is_there() ? Numbers<T>(run, score_weights_) : nullptr;
    if (sequences.count > 0) {
      AttendSequencesBackward<T>
          <<<CudaBlocks(sequences.count), this->threads(), 0, StreamOf(run)>>>(
              this->Seen(run), sequences, Arguments(run, score_weights));
      CheckLaunch("sequence_attention_grad");
    }
    if (!score_weight_grad_.is_there()) return;
    LaunchSumColumns(run, score_weights, sequences.count, this->key_width_, this->key_width_,
                     score_weight_grad_(run));
  }

 private:
  AttendedGradient<T> Arguments(const KernelContext& run, T* score_weights) const {
    return {.queries = this->Queries(run),
            .weights = weights_(run),
            .context_grad = context_grad_(run),
            .weights_grad = weights_grad_(run),
            .scores = Numbers<T>(run, scores_),
            .query_grad = query_grad_(run),
            .encoded_grad = encoded_grad_(run),
            .keys_grad = keys_grad_(run),
            .score_weights = score_weights};
  }

  In<T> weights_;
  In<T> context_grad_;
  In<T> weights_grad_;
  Out<T> query_grad_;
  Out<T> encoded_grad_;
  Out<T> keys_grad_;
  Out<T> score_weight_grad_;
  // Workspaces.
  int scores_;
  int score_weights_;
};

template <typename T>
void AddSequenceAttentionKernels(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "sequence_attention",
                   PrepareKernel<SequenceAttentionForwardKernel<T>>);
  AddCudaKernel<T>(registry, "sequence_attention_grad",
                   PrepareKernel<SequenceAttentionGradKernel<T>>);
}

}  // namespace

void RegisterSequenceAttentionCuda(OpRegistry& registry) {
  AddSequenceAttentionKernels<float>(registry);
  AddSequenceAttentionKernels<double>(registry);
}

}  // namespace skiff
