// CUDA kernels of sequence_attention; sequence_attention.cc has the formulas. A block takes a
// sequence (cuda_attention.cuh).
#include <memory>

#include "framework/op/registry.h"
#include "operators/sequence/kernels/cuda_attention.cuh"
#include "operators/sequence/kernels/token_attention_arguments.h"

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

template <typename T>
std::unique_ptr<Kernel> PrepareSequenceAttention(PrepareContext& context) {
  const AttentionArguments<T> seen(context);
  const std::shared_ptr<CudaLevel> level = SendLevel(context, "Encoded");
  const In<T> query(context, "Query");
  const Out<T> out(context, "Context");
  const Out<T> weights(context, "AttentionWeights");
  return MakeRowsKernel([=](const KernelContext& run) {
    const CudaOffsets sequences = level->Send(run, seen.encoded.tensor(run));
    if (sequences.count == 0) return;
    AttendSequences<T>
        <<<CudaBlocks(sequences.count), AttentionThreads(seen.width, seen.key_width), 0,
           StreamOf(run)>>>(seen.AllTokens(run), sequences, query(run), weights(run), out(run));
    CheckLaunch("sequence_attention");
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareSequenceAttentionGrad(PrepareContext& context) {
  const AttentionArguments<T> seen(context);
  const SequenceAttentionGradients<T> gradients(context);
  const std::shared_ptr<CudaLevel> level = SendLevel(context, "Encoded");
  const In<T> query(context, "Query");
  const int64_t score_rows =
      gradients.of_score_weight.is_there() ? context.Input("Query").shape[0] : 0;
  const Workspace<T> scores(context, context.Input("Encoded").shape[0]);
  const Workspace<T> score_weights(context, score_rows, seen.key_width);
  return MakeRowsKernel([=](const KernelContext& run) {
    const CudaOffsets sequences = level->Send(run, seen.encoded.tensor(run));
    const bool sums = gradients.of_score_weight.is_there();
    const AttendedGradient<T> args = {.queries = query(run),
                                      .weights = gradients.weights(run),
                                      .context_grad = gradients.of_context(run),
                                      .weights_grad = gradients.of_weights(run),
                                      .scores = scores(run),
                                      .query_grad = gradients.of_query(run),
                                      .encoded_grad = gradients.of_encoded(run),
                                      .keys_grad = gradients.of_keys(run),
                                      .score_weights = sums ? score_weights(run) : nullptr};
    if (sequences.count > 0) {
      AttendSequencesBackward<T>
          <<<CudaBlocks(sequences.count), AttentionThreads(seen.width, seen.key_width), 0,
             StreamOf(run)>>>(seen.AllTokens(run), sequences, args);
      CheckLaunch("sequence_attention_grad");
    }
    if (!sums) return;
    LaunchSumColumns(run, args.score_weights, sequences.count, seen.key_width, seen.key_width,
                     gradients.of_score_weight(run));
  });
}

template <typename T>
void AddSequenceAttentionKernels(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "sequence_attention", PrepareSequenceAttention<T>);
  AddCudaKernel<T>(registry, "sequence_attention_grad", PrepareSequenceAttentionGrad<T>);
}

}  // namespace

void RegisterSequenceAttentionCuda(OpRegistry& registry) {
  AddSequenceAttentionKernels<float>(registry);
  AddSequenceAttentionKernels<double>(registry);
}

}  // namespace skiff
