// Attention on a device; token_attention.h has the formulas. A block takes a sequence: for a sum
// over columns, its warps take the tokens; for a sum over tokens, its threads take the columns.
//
// First the work of a block on a sequence, then the attention of a decoder, for all sequences with
// a row in a time step.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "operators/common/cuda/cuda_combine.cuh"
#include "operators/sequence/kernels/cuda_steps.cuh"
#include "operators/sequence/kernels/token_attention.h"

namespace skiff {

// The threads of a block: as many as columns, within limits.
inline int AttentionThreads(int64_t width, int64_t key_width) {
  constexpr int64_t kFewestWarps = 2;
  const int64_t warps = (std::max(width, key_width) + kCudaWarp - 1) / kCudaWarp;
  return kCudaWarp *
         static_cast<int>(std::clamp<int64_t>(warps, kFewestWarps, kCudaThreads / kCudaWarp));
}

// Calls body(s, sum over the columns of term(s, i)) for each token s, on the first lane of a warp.
template <typename T, class Term, class Body>
__device__ void ForEachToken(int64_t tokens, int64_t columns, const Term& term, const Body& body) {
  const int lane = static_cast<int>(threadIdx.x) % kCudaWarp;
  for (int64_t s = threadIdx.x / kCudaWarp; s < tokens; s += blockDim.x / kCudaWarp) {
    T sum = 0;
    for (int64_t i = lane; i < columns; i += kCudaWarp) sum += term(s, i);
    sum = CombineWarp(sum, JoinBySum{});
    if (lane == 0) body(s, sum);
  }
}

// Returns `count` of the tokens, from `first` on.
template <typename T>
__device__ AttendedTokens<T> TokensOf(AttendedTokens<T> all, int64_t first, int64_t count) {
  all.tokens = count;
  all.encoded += first * all.width;
  all.keys += first * all.key_width;
  return all;
}

// Sets the weights and calls store(i, number) for each number of the context. All threads of the
// block must see the query.
template <typename T, class Store>
__device__ void AttendByBlock(const AttendedTokens<T>& seen, const T* query, T* weights,
                              const Store& store) {
  ForEachToken<T>(
      seen.tokens, seen.key_width,
      [&](int64_t s, int64_t i) {
        const T key = seen.keys[s * seen.key_width + i];
        return seen.score_weight == nullptr ? query[i] * key
                                            : seen.score_weight[i] * std::tanh(query[i] + key);
      },
      [&](int64_t s, T score) { weights[s] = score; });
  __syncthreads();
  T largest = -INFINITY;
  for (int64_t s = threadIdx.x; s < seen.tokens; s += blockDim.x)
    largest = largest < weights[s] ? weights[s] : largest;
  largest = CombineBlock(
      largest, [](T a, T b) { return a < b ? b : a; }, blockDim.x);
  T sum = 0;
  for (int64_t s = threadIdx.x; s < seen.tokens; s += blockDim.x) {
    const T power = std::exp(weights[s] - largest);
    weights[s] = power;
    sum += power;
  }
  sum = CombineBlock(sum, JoinBySum{}, blockDim.x);
  for (int64_t s = threadIdx.x; s < seen.tokens; s += blockDim.x) weights[s] /= sum;
  __syncthreads();
  for (int64_t i = threadIdx.x; i < seen.width; i += blockDim.x) {
    T context = 0;
    for (int64_t s = 0; s < seen.tokens; ++s)
      context += weights[s] * seen.encoded[s * seen.width + i];
    store(i, context);
  }
}

// Sets the gradient of the scores, given the gradients of the context and, unless nullptr, of the
// weights. All threads of the block must see the former; they see the result.
template <typename T>
__device__ void ScoresBackwardByBlock(const AttendedTokens<T>& seen, const T* weights,
                                      const T* context_grad, const T* weights_grad, T* scores) {
  ForEachToken<T>(
      seen.tokens, seen.width,
      [&](int64_t s, int64_t i) { return context_grad[i] * seen.encoded[s * seen.width + i]; },
      [&](int64_t s, T sum) { scores[s] = weights_grad == nullptr ? sum : sum + weights_grad[s]; });
  __syncthreads();
  T mean = 0;
  for (int64_t s = threadIdx.x; s < seen.tokens; s += blockDim.x) mean += weights[s] * scores[s];
  mean = CombineBlock(mean, JoinBySum{}, blockDim.x);
  for (int64_t s = threadIdx.x; s < seen.tokens; s += blockDim.x)
    scores[s] = weights[s] * (scores[s] - mean);
  __syncthreads();
}

// Given the gradient of the scores, calls store_key(at, gradient) for each number of the keys, `at`
// from the first key on, and for each column store(i, gradient of the query, gradient of v).
template <typename T, class StoreKey, class Store>
__device__ void QueryBackwardByBlock(const AttendedTokens<T>& seen, const T* query, const T* scores,
                                     const StoreKey& store_key, const Store& store) {
  for (int64_t i = threadIdx.x; i < seen.key_width; i += blockDim.x) {
    T d_query = 0;
    T d_score_weight = 0;
    for (int64_t s = 0; s < seen.tokens; ++s) {
      const int64_t at = s * seen.key_width + i;
      const T key = seen.keys[at];
      T d_key = scores[s] * query[i];
      T through_query = scores[s] * key;
      if (seen.score_weight != nullptr) {
        const T mixed = std::tanh(query[i] + key);
        d_score_weight += scores[s] * mixed;
        d_key = through_query = scores[s] * seen.score_weight[i] * (1 - mixed * mixed);
      }
      d_query += through_query;
      store_key(at, d_key);
    }
    store(i, d_query, d_score_weight);
  }
}

// A sentence, in the order of the LoDs.
struct DecodedSentence {
  friend bool operator==(const DecodedSentence&, const DecodedSentence&) = default;

  int64_t row = 0;  // its first one
  int64_t rows = 0;
  int64_t token = 0;  // its first one
  int64_t tokens = 0;
  int64_t weight = 0;  // its first number in AttentionWeights
};

// What all rows see.
template <typename T>
struct Attended {
  const DecodedSentence* sentences;
  AttendedTokens<T> all;  // of all sentences
};

template <typename T>
struct AttendStep {
  Attended<T> seen;
  const T* query_sums;  // [count, A]: queries without the bias
  const T* query_bias;  // [A] or nullptr
  T* queries;           // [count, A], may be query_sums
  T* batch_queries;     // or nullptr
  T* weights;           // AttentionWeights; or has_step_weights: one for each token
  bool has_step_weights;
  T* contexts;      // [count, E]
  T* row_contexts;  // of all rows, or nullptr
};

template <typename T>
__global__ void __launch_bounds__(kCudaThreads) AttendRows(CudaStep step, AttendStep<T> args) {
  const AttendedTokens<T>& all = args.seen.all;
  for (int64_t j = blockIdx.x; j < step.count; j += gridDim.x) {
    const DecodedSentence sentence = args.seen.sentences[step.sequences.Index(j)];
    T* query = args.queries + j * all.key_width;
    for (int64_t i = threadIdx.x; i < all.key_width; i += blockDim.x) {
      T sum = args.query_sums[j * all.key_width + i];
      if (args.query_bias != nullptr) sum += args.query_bias[i];
      query[i] = sum;
      if (args.batch_queries != nullptr)
        args.batch_queries[(step.first + j) * all.key_width + i] = sum;
    }
    __syncthreads();
    T* weights =
        args.weights +
        (args.has_step_weights ? sentence.token : sentence.weight + step.time * sentence.tokens);
    const int64_t row = step.sequences.Row(j, step.time);
    AttendByBlock(TokensOf(all, sentence.token, sentence.tokens), query, weights,
                  [&](int64_t i, T context) {
                    args.contexts[j * all.width + i] = context;
                    if (args.row_contexts != nullptr)
                      args.row_contexts[row * all.width + i] = context;
                  });
  }
}

template <typename T>
struct AttendBackwardStep {
  Attended<T> seen;
  const T* batch_queries;
  const T* weights;       // AttentionWeights
  const T* context_grad;  // from the outside, of all rows; or nullptr
  const T* weights_grad;  // from the outside; or nullptr
  bool has_contexts;      // whether `contexts` holds the gradient that the step's cell gives
  T* contexts;            // [count, E]; the whole gradient is written to it
  T* row_contexts;        // the same for all rows, or nullptr
  T* scores;              // one for each token: scratch
  T* batch_queries_grad;
  // The gradient of the states that the queries are made of, [count, H]. adds_queries: the gradient
  // of the queries is added. clears_next: it is set to 0 before, if there is no next step.
  T* next;
  int64_t hidden_width;
  bool adds_queries;
  bool clears_next;
  T* keys_grad;      // added to, or nullptr
  T* score_weights;  // [sequences, A], added to: the gradient of ScoreWeight; or nullptr
  // Copies of rows of Context and Hidden in batch order; nullptr: not wanted.
  const T* context;
  T* batch_contexts;
  const T* hidden;
  T* batch_hidden;
};

template <typename T>
__device__ void CopyRow(const T* from, int64_t count, T* to) {
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) to[i] = from[i];
}

template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    AttendBackwardRows(CudaStep step, AttendBackwardStep<T> args) {
  const AttendedTokens<T>& all = args.seen.all;
  const int64_t width = all.width;
  const int64_t key_width = all.key_width;
  for (int64_t j = blockIdx.x; j < step.count; j += gridDim.x) {
    const int64_t row = step.sequences.Row(j, step.time);
    const int64_t batch_row = step.first + j;
    const bool has_next = j < step.later;
    const DecodedSentence sentence = args.seen.sentences[step.sequences.Index(j)];
    T* context = args.contexts + j * width;
    for (int64_t i = threadIdx.x; i < width; i += blockDim.x) {
      T sum = args.has_contexts ? context[i] : T{0};
      if (args.context_grad != nullptr) sum += args.context_grad[row * width + i];
      context[i] = sum;
      if (args.row_contexts != nullptr) args.row_contexts[row * width + i] = sum;
    }
    if (args.batch_contexts != nullptr)
      CopyRow(args.context + row * width, width, args.batch_contexts + batch_row * width);
    if (args.batch_hidden != nullptr) {
      CopyRow(args.hidden + row * args.hidden_width, args.hidden_width,
              args.batch_hidden + batch_row * args.hidden_width);
    }
    T* next = args.next + j * args.hidden_width;
    if (args.clears_next && !has_next) {
      for (int64_t i = threadIdx.x; i < args.hidden_width; i += blockDim.x) next[i] = 0;
    }
    __syncthreads();
    const AttendedTokens<T> seen = TokensOf(all, sentence.token, sentence.tokens);
    const int64_t first_weight = sentence.weight + step.time * sentence.tokens;
    T* scores = args.scores + sentence.token;
    ScoresBackwardByBlock(seen, args.weights + first_weight, context,
                          args.weights_grad == nullptr ? nullptr : args.weights_grad + first_weight,
                          scores);
    T* keys_grad =
        args.keys_grad == nullptr ? nullptr : args.keys_grad + sentence.token * key_width;
    QueryBackwardByBlock(
        seen, args.batch_queries + batch_row * key_width, scores,
        [&](int64_t at, T d_key) {
          if (keys_grad != nullptr) keys_grad[at] += d_key;
        },
        [&](int64_t i, T d_query, T d_score_weight) {
          args.batch_queries_grad[batch_row * key_width + i] = d_query;
          if (args.adds_queries) next[i] += d_query;
          if (args.score_weights == nullptr) return;
          T* sum = args.score_weights + j * key_width + i;
          *sum = (has_next ? *sum : T{0}) + d_score_weight;
        });
    __syncthreads();
  }
}

// The gradient of Encoded: of each token the sum of the gradients of the contexts, times its
// weights.
template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    SumContexts(CudaOffsets tokens, const DecodedSentence* sentences, const T* weights,
                const T* row_contexts, int64_t count, int64_t width, int threads_of_row,
                T* encoded_grad) {
  ForEachColumn(
      count, width, threads_of_row,
      [&](int64_t token) { return sentences[tokens.SequenceOf(token)]; },
      [&](int64_t token, int64_t i, const DecodedSentence& sentence) {
        const T* weight = weights + sentence.weight + token - sentence.token;
        const T* context = row_contexts + sentence.row * width + i;
        T sum = 0;
        for (int64_t r = 0; r < sentence.rows; ++r)
          sum += weight[r * sentence.tokens] * context[r * width];
        encoded_grad[token * width + i] = sum;
      });
}

}  // namespace skiff
