// CUDA kernels of multihead_attention and its gradient; multihead_attention.cc has the formulas.
//
// A block computes the rows of one tile of queries (Out, Query@GRAD) or of keys (Key@GRAD,
// Value@GRAD) of a head. It goes through the other tiles in order, so nothing is summed across
// blocks. Scores are computed once in each of the three kernels: that is two products more than if
// one kernel computed all gradients, which then would have to add to memory in turn.
//
// T is what is stored. Scores, weights and sums of half are float.
#include <algorithm>
#include <limits>
#include <memory>
#include <string>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_combine.cuh"
#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/dropout_settings.h"
#include "operators/nn/attention/attention_arguments.h"
#include "operators/nn/attention/cuda_attention_dropout.cuh"
#include "operators/nn/attention/cuda_attention_tiles.cuh"
#include "operators/nn/attention/first_place.h"

namespace skiff {
namespace {

// The widest head that there are registers for.
constexpr int64_t kMaxWidth = 256;

// At least. Two hide each other's waits; for wide heads there are registers for one.
template <int kColumns>
constexpr int kBlocksPerProcessor = kColumns <= 64 ? 2 : 1;

// The rows of all heads of all sequences; strides in elements.
template <typename T>
struct AllHeads {
  T* data = nullptr;  // may be absent
  int64_t sequence = 0;
  int row = 0;
};

// What is dropped. The key is in device memory where an earlier op has drawn.
template <typename T>
struct Dropout {
  uint32_t threshold = 0;  // 0: nothing
  WideType<T> scale = 1;   // of what is kept
  RandomKey key;
  const int64_t* stored_key = nullptr;
};

template <typename T>
struct Attention {
  int heads = 0;
  int queries = 0;
  int keys = 0;
  int width = 0;
  bool causal = false;
  WideType<T> scale = 1;
  AllHeads<const T> query;
  AllHeads<const T> key;
  AllHeads<const T> value;
  const T* bias = nullptr;
  int64_t bias_sequence = 0;
  int64_t bias_head = 0;
  int bias_row = 0;
  const int64_t* key_lengths = nullptr;
  const int64_t* positions = nullptr;
  Dropout<T> dropout;
};

// By head and query.
template <typename Wide>
struct Statistics {
  Wide* max = nullptr;
  Wide* sum = nullptr;
};

template <typename T>
struct Outputs {
  AllHeads<T> out;
  Statistics<WideType<T>> statistics;  // each may be absent
  int64_t* dropout_key = nullptr;      // may be absent
  uint64_t* fault = nullptr;
  int64_t sequences = 0;
  int64_t tasks = 0;
};

template <typename T>
struct MultiheadAttentionGradients {
  AllHeads<const T> out_gradient;
  Statistics<const WideType<T>> statistics;
  const WideType<T>* means = nullptr;  // by head and query: the sum of dOut * Out
  AllHeads<T> query;                   // to compute, as the next ones
  AllHeads<T> key;
  AllHeads<T> value;
};

// One head of one sequence.
template <typename T>
class Head {
 public:
  using Wide = WideType<T>;

  // `index`: of all sequences' heads.
  __device__ Head(const Attention<T>& attention, int64_t index)
      : attention_(attention),
        first_query_(index * attention.queries),
        sequence_(static_cast<int>(index / attention.heads)),
        head_(static_cast<int>(index % attention.heads)),
        known_keys_(attention.keys),
        first_place_(attention.keys - attention.queries) {
    if (attention.bias != nullptr) {
      bias_ = attention.bias + sequence_ * attention.bias_sequence + head_ * attention.bias_head;
    }
    if (attention.positions != nullptr && attention.queries > 0) {
      first_place_ = static_cast<int>(
          ClampedPlace(attention.positions[int64_t{sequence_} * attention.queries], first_place_));
      known_keys_ = first_place_ + attention.queries;
    }
    if (attention.key_lengths == nullptr) return;
    const int64_t length = attention.key_lengths[sequence_];
    // A length that is refused mustn't lead anywhere.
    known_keys_ = length < 0                ? 0
                  : length < attention.keys ? static_cast<int>(length)
                                            : attention.keys;
  }

  __device__ int known_keys() const { return known_keys_; }
  // Of all heads' queries.
  __device__ int64_t first_query() const { return first_query_; }

  // The number of keys that a query sees: from the first one on.
  __device__ int VisibleKeys(int query) const {
    const int before = query + 1 + first_place_;
    return attention_.causal && before < known_keys_ ? before : known_keys_;
  }
  // The first query that sees a key.
  __device__ int FirstQuery(int key) const {
    const int first = key - first_place_;
    return attention_.causal && first > 0 ? first : 0;
  }

  template <typename U>
  __device__ TileRows<U> Rows(const AllHeads<U>& all, int first) const {
    TileRows<U> rows;
    if (all.data == nullptr) return rows;
    rows.data =
        all.data + sequence_ * all.sequence + head_ * attention_.width + int64_t{first} * all.row;
    rows.stride = all.row;
    return rows;
  }

  // Of a product of a query and a key that it sees.
  __device__ Wide Score(Wide product, int query, int key) const {
    const Wide score = product * attention_.scale;
    if (bias_ == nullptr) return score;
    return score + Widened(bias_[int64_t{query} * attention_.bias_row + key]);
  }

  __device__ bool drops() const { return attention_.dropout.threshold != 0; }
  // Calls drop(i) for each of kCount keys from `first` on whose weight for the query is dropped.
  template <int kCount, class Drop>
  __device__ void ForEachDropped(int query, int first, const Drop& drop) const {
    const int64_t word = (first_query_ + query) * attention_.keys + first;
    ForEachWord<kCount>(DropoutKey(), static_cast<uint64_t>(word), [&](int i, uint32_t drawn) {
      if (drawn < attention_.dropout.threshold) drop(i);
    });
  }

 private:
  __device__ RandomKey DropoutKey() const {
    const int64_t* stored = attention_.dropout.stored_key;
    if (stored == nullptr) return attention_.dropout.key;
    RandomKey key;
    key.seed = static_cast<uint64_t>(stored[0]);
    key.op_id = static_cast<uint64_t>(stored[1]);
    key.step = static_cast<uint64_t>(stored[2]);
    return key;
  }

  const Attention<T>& attention_;
  int64_t first_query_;
  int sequence_;
  int head_;
  int known_keys_;
  int first_place_;  // of the queries among the keys, where attention is causal
  const T* bias_ = nullptr;
};

__device__ int TileCount(int rows, int first, int tile) {
  return rows - first < tile ? rows - first : tile;
}

template <typename T>
__device__ T Infinity() {
  return static_cast<T>(HUGE_VAL);
}

template <typename T>
__device__ T Larger(T a, T b) {
  return a < b ? b : a;
}

// The maximum and sum so far of the rows of a thread, and how a tile of scores changes them.
template <typename T, int kColumns>
class RunningSoftmax {
 public:
  using Tile = AttentionTile<T, kColumns>;

  __device__ RunningSoftmax() {
#pragma unroll
    for (int i = 0; i < Tile::kSquare; ++i) {
      max_[i] = -Infinity<T>();
      sum_[i] = T(0);
    }
  }

  __device__ T max(int i) const { return max_[i]; }
  // Returns the sum of a row, of which each thread has only added its own part.
  __device__ T Sum(int i) const { return CombineWarp(sum_[i], JoinBySum{}, Tile::kSide); }

  // Makes weights of scores, and scales the sums so far. All lanes of the warp take part.
  __device__ void Add(typename Tile::Scores& scores, typename Tile::Sums& sums) {
#pragma unroll
    for (int i = 0; i < Tile::kSquare; ++i) {
      T top = scores[i][0];
#pragma unroll
      for (int j = 1; j < Tile::kSquare; ++j) top = Larger(top, scores[i][j]);
      top = Larger(max_[i], CombineWarp(
                                top, [](T a, T b) { return Larger(a, b); }, Tile::kSide));
      // Where all scores so far are -inf, all exponentials are 0.
      const T shift = top == -Infinity<T>() ? T(0) : top;
      const T factor = std::exp(max_[i] - shift);
      max_[i] = top;
      sum_[i] *= factor;
#pragma unroll
      for (int j = 0; j < Tile::kSquare; ++j) {
        scores[i][j] = std::exp(scores[i][j] - shift);
        sum_[i] += scores[i][j];
      }
#pragma unroll
      for (int group = 0; group < Tile::kGroups; ++group) {
#pragma unroll
        for (int j = 0; j < Tile::kSquare; ++j) sums[i][group][j] *= factor;
      }
    }
  }

 private:
  T max_[Tile::kSquare];
  T sum_[Tile::kSquare];
};

// What only one block does: refuses lengths, and stores the dropout's key for the gradient.
template <typename T>
__device__ void Begin(const Attention<T>& attention, const Outputs<T>& outputs) {
  if (attention.key_lengths != nullptr) {
    for (int64_t i = threadIdx.x; i < outputs.sequences; i += kCudaThreads) {
      const int64_t length = attention.key_lengths[i];
      if (length < 0 || length > attention.keys) NoteFault(outputs.fault, i, length);
    }
  }
  if (outputs.dropout_key == nullptr || threadIdx.x > 0) return;
  outputs.dropout_key[0] = static_cast<int64_t>(attention.dropout.key.seed);
  outputs.dropout_key[1] = static_cast<int64_t>(attention.dropout.key.op_id);
  outputs.dropout_key[2] = static_cast<int64_t>(StepOf(attention.dropout.key));
}

template <typename T, int kColumns>
__global__ void __launch_bounds__(kCudaThreads, kBlocksPerProcessor<kColumns>)
    Attend(Attention<T> attention, Outputs<T> outputs) {
  using Wide = WideType<T>;
  using Tile = AttentionTile<Wide, kColumns>;
  alignas(16) __shared__ typename Tile::Weights weights;
  alignas(16) __shared__ Wide stage[Tile::kStage];
  if (blockIdx.x == 0) Begin(attention, outputs);
  const int64_t task = blockIdx.x;
  if (task >= outputs.tasks) return;
  const int tiles = (attention.queries + Tile::kTile - 1) / Tile::kTile;
  const Head<T> head(attention, task / tiles);
  // Where attention is causal, the last tiles take the longest: they begin first.
  const int first_query = (tiles - 1 - static_cast<int>(task % tiles)) * Tile::kTile;
  const int query_count = TileCount(attention.queries, first_query, Tile::kTile);
  const int visible = head.VisibleKeys(first_query + query_count - 1);
  const auto query_rows = head.Rows(attention.query, first_query);
  // A warp has the rows of two neighbouring threads of a column of the square.
  const int first_row_of_warp = threadIdx.x / kCudaWarp * kCudaWarp / Tile::kSide * Tile::kSquare;
  const bool warp_has_rows = first_row_of_warp < query_count;
  RunningSoftmax<Wide, kColumns> softmax;
  typename Tile::Sums sums = {};
  for (int first_key = 0; first_key < visible; first_key += Tile::kTile) {
    const int key_count = TileCount(visible, first_key, Tile::kTile);
    typename Tile::Scores scores;
    MultiplyRows<Wide, kColumns>(query_rows, query_count, head.Rows(attention.key, first_key),
                                 key_count, attention.width, stage, scores);
    if (warp_has_rows) {
      const int first_of_thread = first_key + Tile::OtherRow();
#pragma unroll
      for (int i = 0; i < Tile::kSquare; ++i) {
        const int query = first_query + Tile::OwnRow() + i;
        const int seen = query < attention.queries ? head.VisibleKeys(query) : 0;
#pragma unroll
        for (int j = 0; j < Tile::kSquare; ++j) {
          const int of_key = first_of_thread + j;
          scores[i][j] =
              of_key < seen ? head.Score(scores[i][j], query, of_key) : -Infinity<Wide>();
        }
      }
      softmax.Add(scores, sums);
      if (head.drops() && first_of_thread < visible) {
#pragma unroll
        for (int i = 0; i < Tile::kSquare; ++i) {
          head.template ForEachDropped<Tile::kSquare>(first_query + Tile::OwnRow() + i,
                                                      first_of_thread,
                                                      [&](int j) { scores[i][j] = Wide(0); });
        }
      }
      StoreWeights<Wide, kColumns>(scores, weights);
    }
    AddWeightedRows<Wide, kColumns>(weights, query_count, head.Rows(attention.value, first_key),
                                    key_count, attention.width, stage, sums);
  }
  if (!warp_has_rows) return;
  Wide factors[Tile::kSquare];
#pragma unroll
  for (int i = 0; i < Tile::kSquare; ++i) {
    const Wide sum = softmax.Sum(i);
    // Without keys the sums over them are empty: 0, not 0 / 0.
    factors[i] = visible == 0 ? Wide(0) : attention.dropout.scale / sum;
    const int row = Tile::OwnRow() + i;
    if (threadIdx.x % Tile::kSide > 0 || row >= query_count) continue;
    const int64_t at = head.first_query() + first_query + row;
    if (outputs.statistics.max != nullptr) outputs.statistics.max[at] = softmax.max(i);
    if (outputs.statistics.sum != nullptr) outputs.statistics.sum[at] = sum;
  }
  StoreSums<Wide, kColumns>(
      sums, [&](int i) { return factors[i]; }, query_count, attention.width,
      head.Rows(outputs.out, first_query));
}

// means[head][query] = the sum of out * out_gradient. A warp a row.
template <typename T>
__global__ void MeanGradients(Attention<T> attention, AllHeads<const T> out,
                              AllHeads<const T> out_gradient, int64_t count, WideType<T>* means) {
  const int64_t warps = int64_t{gridDim.x} * (kCudaThreads / kCudaWarp);
  const int lane = threadIdx.x % kCudaWarp;
  for (int64_t row = int64_t{blockIdx.x} * (kCudaThreads / kCudaWarp) + threadIdx.x / kCudaWarp;
       row < count; row += warps) {
    const Head<T> head(attention, row / attention.queries);
    const int query = static_cast<int>(row % attention.queries);
    const T* of_out = head.Rows(out, query).data;
    const T* of_gradient = head.Rows(out_gradient, query).data;
    WideType<T> sum = 0;
    for (int i = lane; i < attention.width; i += kCudaWarp) {
      sum += Widened(of_out[i]) * Widened(of_gradient[i]);
    }
    sum = CombineWarp(sum, JoinBySum{});
    if (lane == 0) means[row] = sum;
  }
}

// What the gradient needs to know of a query.
template <typename T>
struct QueryStatistics {
  using Wide = WideType<T>;
  Wide max = 0;
  Wide inverse_sum = 0;
  Wide mean = 0;

  __device__ QueryStatistics(const MultiheadAttentionGradients<T>& gradients, int64_t at)
      : max(gradients.statistics.max[at]),
        inverse_sum(Wide(1) / gradients.statistics.sum[at]),
        mean(gradients.means[at]) {}
};

// Makes of products of queries with keys the weights that Out was summed with, and of products of
// dOut with values the gradients of scores. An element is not 0 only if the query sees the key.
template <typename T>
__device__ void WeighGradient(const Head<T>& head, const QueryStatistics<T>& statistics, int query,
                              int key, bool is_dropped, WideType<T> kept_scale,
                              WideType<T>* product, WideType<T>* gradient) {
  using Wide = WideType<T>;
  const Wide weight =
      std::exp(head.Score(*product, query, key) - statistics.max) * statistics.inverse_sum;
  *product = is_dropped ? Wide(0) : weight * kept_scale;
  const Wide of_weight = is_dropped ? Wide(0) : *gradient * kept_scale;
  *gradient = weight * (of_weight - statistics.mean);
}

template <typename T, int kColumns>
__global__ void __launch_bounds__(kCudaThreads, kBlocksPerProcessor<kColumns>)
    QueryGradient(Attention<T> attention, MultiheadAttentionGradients<T> gradients) {
  using Wide = WideType<T>;
  using Tile = AttentionTile<Wide, kColumns>;
  alignas(16) __shared__ typename Tile::Weights weights;
  alignas(16) __shared__ Wide stage[Tile::kStage];
  const int64_t task = blockIdx.x;
  const int tiles = (attention.queries + Tile::kTile - 1) / Tile::kTile;
  const Head<T> head(attention, task / tiles);
  const int first_query = (tiles - 1 - static_cast<int>(task % tiles)) * Tile::kTile;
  const int query_count = TileCount(attention.queries, first_query, Tile::kTile);
  const int visible = head.VisibleKeys(first_query + query_count - 1);
  const auto query_rows = head.Rows(attention.query, first_query);
  const auto gradient_rows = head.Rows(gradients.out_gradient, first_query);
  typename Tile::Sums sums = {};
  for (int first_key = 0; first_key < visible; first_key += Tile::kTile) {
    const int key_count = TileCount(visible, first_key, Tile::kTile);
    const auto key_rows = head.Rows(attention.key, first_key);
    typename Tile::Scores scores;
    typename Tile::Scores of_scores;
    MultiplyRows<Wide, kColumns>(query_rows, query_count, key_rows, key_count, attention.width,
                                 stage, scores);
    MultiplyRows<Wide, kColumns>(gradient_rows, query_count, head.Rows(attention.value, first_key),
                                 key_count, attention.width, stage, of_scores);
    const int first_of_thread = first_key + Tile::OtherRow();
    if (Tile::OwnRow() < query_count && first_of_thread < visible) {
#pragma unroll
      for (int i = 0; i < Tile::kSquare; ++i) {
        const int query = first_query + Tile::OwnRow() + i;
        if (query >= attention.queries) break;
        const QueryStatistics<T> statistics(gradients, head.first_query() + query);
        const int seen = head.VisibleKeys(query);
        bool is_dropped[Tile::kSquare] = {};
        if (head.drops()) {
          head.template ForEachDropped<Tile::kSquare>(query, first_of_thread,
                                                      [&](int j) { is_dropped[j] = true; });
        }
#pragma unroll
        for (int j = 0; j < Tile::kSquare; ++j) {
          if (first_of_thread + j < seen) {
            WeighGradient(head, statistics, query, first_of_thread + j, is_dropped[j],
                          attention.dropout.scale, &scores[i][j], &of_scores[i][j]);
          } else {
            of_scores[i][j] = Wide(0);
          }
        }
      }
      StoreWeights<Wide, kColumns>(of_scores, weights);
    }
    AddWeightedRows<Wide, kColumns>(weights, query_count, key_rows, key_count, attention.width,
                                    stage, sums);
  }
  StoreSums<Wide, kColumns>(
      sums, [&](int) { return attention.scale; }, query_count, attention.width,
      head.Rows(gradients.query, first_query));
}

template <typename T, int kColumns>
__global__ void __launch_bounds__(kCudaThreads, kBlocksPerProcessor<kColumns>)
    KeyGradients(Attention<T> attention, MultiheadAttentionGradients<T> gradients) {
  using Wide = WideType<T>;
  using Tile = AttentionTile<Wide, kColumns>;
  alignas(16) __shared__ typename Tile::Weights weights;
  alignas(16) __shared__ Wide stage[Tile::kStage];
  const int64_t task = blockIdx.x;
  const int tiles = (attention.keys + Tile::kTile - 1) / Tile::kTile;
  const Head<T> head(attention, task / tiles);
  const int first_key = static_cast<int>(task % tiles) * Tile::kTile;
  const int key_count = TileCount(attention.keys, first_key, Tile::kTile);
  const auto key_rows = head.Rows(attention.key, first_key);
  const auto value_rows = head.Rows(attention.value, first_key);
  typename Tile::Sums key_sums = {};
  typename Tile::Sums value_sums = {};
  // Keys that no query sees get zeros.
  const int first_seeing = first_key < head.known_keys()
                               ? head.FirstQuery(first_key) / Tile::kTile * Tile::kTile
                               : attention.queries;
  for (int first_query = first_seeing; first_query < attention.queries;
       first_query += Tile::kTile) {
    const int query_count = TileCount(attention.queries, first_query, Tile::kTile);
    const auto query_rows = head.Rows(attention.query, first_query);
    const auto gradient_rows = head.Rows(gradients.out_gradient, first_query);
    typename Tile::Scores scores;
    typename Tile::Scores of_scores;
    MultiplyRows<Wide, kColumns>(key_rows, key_count, query_rows, query_count, attention.width,
                                 stage, scores);
    MultiplyRows<Wide, kColumns>(value_rows, key_count, gradient_rows, query_count, attention.width,
                                 stage, of_scores);
    const int first_of_thread = first_key + Tile::OwnRow();
    const bool has_scores = Tile::OwnRow() < key_count && Tile::OtherRow() < query_count;
    if (has_scores) {
#pragma unroll
      for (int j = 0; j < Tile::kSquare; ++j) {
        const int query = first_query + Tile::OtherRow() + j;
        if (query >= attention.queries) break;
        const QueryStatistics<T> statistics(gradients, head.first_query() + query);
        const int seen = head.VisibleKeys(query);
        bool is_dropped[Tile::kSquare] = {};
        if (head.drops()) {
          head.template ForEachDropped<Tile::kSquare>(query, first_of_thread,
                                                      [&](int i) { is_dropped[i] = true; });
        }
#pragma unroll
        for (int i = 0; i < Tile::kSquare; ++i) {
          if (first_of_thread + i < seen) {
            WeighGradient(head, statistics, query, first_of_thread + i, is_dropped[i],
                          attention.dropout.scale, &scores[i][j], &of_scores[i][j]);
          } else {
            scores[i][j] = of_scores[i][j] = Wide(0);
          }
        }
      }
      StoreWeights<Wide, kColumns>(scores, weights);
    }
    if (gradients.value.data != nullptr) {
      AddWeightedRows<Wide, kColumns>(weights, key_count, gradient_rows, query_count,
                                      attention.width, stage, value_sums);
    }
    if (gradients.key.data == nullptr) continue;
    __syncthreads();
    if (has_scores) StoreWeights<Wide, kColumns>(of_scores, weights);
    AddWeightedRows<Wide, kColumns>(weights, key_count, query_rows, query_count, attention.width,
                                    stage, key_sums);
  }
  if (gradients.value.data != nullptr) {
    StoreSums<Wide, kColumns>(
        value_sums, [](int) { return Wide(1); }, key_count, attention.width,
        head.Rows(gradients.value, first_key));
  }
  if (gradients.key.data != nullptr) {
    StoreSums<Wide, kColumns>(
        key_sums, [&](int) { return attention.scale; }, key_count, attention.width,
        head.Rows(gradients.key, first_key));
  }
}

// ---- the host's side

template <typename T>
AllHeads<T> HeadsOf(const HeadPlaces& places, T* data) {
  if (data == nullptr) return {};
  return {data + places.first, places.length * places.stride, static_cast<int>(places.stride)};
}

// What forward and backward have in common.
template <typename T>
class AttentionCall {
 public:
  explicit AttentionCall(PrepareContext& context)
      : sizes_(ParseAttention(context)),
        query_(InputPlaces(context, sizes_, AttentionPart::kQuery)),
        key_(InputPlaces(context, sizes_, AttentionPart::kKey)),
        value_(InputPlaces(context, sizes_, AttentionPart::kValue)),
        bias_(context),
        key_lengths_(context, "KeyLengths"),
        positions_(context, "Positions"),
        scale_(static_cast<WideType<T>>(context.Attr<float>("scale"))),
        dropout_(DropoutSettingsOf(context)) {}

  const AttentionSizes& sizes() const { return sizes_; }
  const DropoutSettings& dropout() const { return dropout_; }
  int64_t head_count() const { return sizes_.batch * sizes_.heads; }

  // Takes the sequences of the run, no more than those that it was prepared for.
  void FollowRows(const KernelContext& run) {
    sizes_.batch = run.input(query_.argument).shape()[0];
  }

  Attention<T> Arguments(const KernelContext& run) const {
    Attention<T> attention;
    attention.heads = static_cast<int>(sizes_.heads);
    attention.queries = static_cast<int>(sizes_.queries);
    attention.keys = static_cast<int>(sizes_.keys);
    attention.width = static_cast<int>(sizes_.width);
    attention.causal = sizes_.causal;
    attention.scale = scale_;
    attention.query = Heads(run, query_);
    attention.key = Heads(run, key_);
    attention.value = Heads(run, value_);
    const HeadRows<const T> bias = bias_.At<T>(run, 0, 0);
    attention.bias = bias.data;
    if (bias.data != nullptr) {
      attention.bias_sequence = bias_.At<T>(run, 1, 0).data - bias.data;
      attention.bias_head = bias_.head;
      attention.bias_row = static_cast<int>(bias_.row);
    }
    attention.key_lengths = key_lengths_(run);
    attention.positions = positions_(run);
    if (dropout_.draws()) {
      attention.dropout.threshold = dropout_.threshold();
      attention.dropout.scale = static_cast<WideType<T>>(dropout_.scale());
    }
    return attention;
  }

 private:
  AllHeads<const T> Heads(const KernelContext& run, const HeadPlaces& places) const {
    return HeadsOf<const T>(places, run.input(places.argument).template data<T>());
  }

  AttentionSizes sizes_;
  HeadPlaces query_;
  HeadPlaces key_;
  HeadPlaces value_;
  BiasPlaces bias_;
  In<int64_t> key_lengths_;
  In<int64_t> positions_;
  WideType<T> scale_;
  DropoutSettings dropout_;
};

template <typename T, int kColumns>
int64_t TilesOf(int64_t rows) {
  constexpr int kTile = AttentionTile<WideType<T>, kColumns>::kTile;
  return (rows + kTile - 1) / kTile;
}

template <typename T, int kColumns>
class AttentionKernel final : public Kernel {
 public:
  explicit AttentionKernel(PrepareContext& context)
      : call_(context),
        op_(context.op().type),
        out_(context, "Out"),
        row_max_(context, "RowMax"),
        row_sum_(context, "RowSum"),
        dropout_key_(context, "DropoutKey") {}

  bool AcceptsFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    call_.FollowRows(run);
    Attention<T> attention = call_.Arguments(run);
    attention.dropout.key = call_.dropout().KeyOf(run);
    Outputs<T> outputs;
    outputs.out = HeadsOf(OutPlaces(call_.sizes()), out_(run));
    outputs.statistics.max = row_max_(run);
    outputs.statistics.sum = row_sum_(run);
    outputs.dropout_key = dropout_key_(run);
    outputs.fault = run.fault;
    outputs.sequences = call_.sizes().batch;
    outputs.tasks = call_.head_count() * TilesOf<T, kColumns>(call_.sizes().queries);
    // One block even if there are no queries: it looks at lengths and stores the key.
    const auto blocks = static_cast<unsigned>(std::max<int64_t>(outputs.tasks, 1));
    Attend<T, kColumns><<<blocks, kCudaThreads, 0, StreamOf(run)>>>(attention, outputs);
    CheckLaunch("multihead_attention");
  }

  [[noreturn]] void ThrowFault(const DataFault& fault) const override {
    Throw(ErrorCode::kOutOfRange, op_, ": KeyLengths[", fault.position, "] is ", fault.value,
          ", expected 0 to the ", call_.sizes().keys, " keys");
  }

 private:
  AttentionCall<T> call_;
  std::string op_;
  Out<T> out_;
  Out<WideType<T>> row_max_;
  Out<WideType<T>> row_sum_;
  Out<int64_t> dropout_key_;
};

template <typename T, int kColumns>
class AttentionGradKernel final : public Kernel {
 public:
  explicit AttentionGradKernel(PrepareContext& context)
      : call_(context),
        arguments_(context, call_.sizes()),
        means_(context.RequestWorkspace(call_.head_count() * call_.sizes().queries *
                                        static_cast<int64_t>(sizeof(WideType<T>)))) {}

  bool AcceptsFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    call_.FollowRows(run);
    const AttentionSizes& sizes = call_.sizes();
    const HeadPlaces out = OutPlaces(sizes);
    Attention<T> attention = call_.Arguments(run);
    if (call_.dropout().draws()) attention.dropout.stored_key = arguments_.dropout_key(run);
    MultiheadAttentionGradients<T> gradients;
    gradients.out_gradient = HeadsOf<const T>(out, arguments_.out_gradient(run));
    gradients.statistics.max = arguments_.row_max(run);
    gradients.statistics.sum = arguments_.row_sum(run);
    const auto heads = [&](const HeadPlaces& places) {
      T* data = arguments_.Data(run, places);
      return data == nullptr ? AllHeads<T>{} : HeadsOf(places, data);
    };
    gradients.query = heads(arguments_.query);
    gradients.key = heads(arguments_.key);
    gradients.value = heads(arguments_.value);
    const int64_t rows = call_.head_count() * sizes.queries;
    if (rows > 0) {
      auto* const means = static_cast<WideType<T>*>(run.workspace(means_));
      MeanGradients<T><<<CudaBlocksOfThreads(rows * kCudaWarp), kCudaThreads, 0, StreamOf(run)>>>(
          attention, HeadsOf<const T>(out, arguments_.out(run)), gradients.out_gradient, rows,
          means);
      CheckLaunch("multihead_attention_grad");
      gradients.means = means;
    }
    const int64_t key_tasks = call_.head_count() * TilesOf<T, kColumns>(sizes.keys);
    if (key_tasks > 0 && (gradients.key.data != nullptr || gradients.value.data != nullptr)) {
      KeyGradients<T, kColumns>
          <<<static_cast<unsigned>(key_tasks), kCudaThreads, 0, StreamOf(run)>>>(attention,
                                                                                 gradients);
      CheckLaunch("multihead_attention_grad");
    }
    const int64_t query_tasks = call_.head_count() * TilesOf<T, kColumns>(sizes.queries);
    if (query_tasks > 0 && gradients.query.data != nullptr) {
      QueryGradient<T, kColumns>
          <<<static_cast<unsigned>(query_tasks), kCudaThreads, 0, StreamOf(run)>>>(attention,
                                                                                   gradients);
      CheckLaunch("multihead_attention_grad");
    }
  }

 private:
  AttentionCall<T> call_;
  AttentionGradArguments<T> arguments_;
  int means_;
};

bool Accepts(const OpContext& context) {
  const AttentionSizes sizes = ParseAttention(context);
  // Within a tile, places are counted in 32 bits.
  constexpr int64_t kMaxColumns = 1 << 22;
  return AllPlain(context) && sizes.width <= kMaxWidth && ColumnsOf(sizes) <= kMaxColumns;
}

template <typename T, template <typename, int> class KernelOf>
std::unique_ptr<Kernel> PrepareMultiheadAttention(PrepareContext& context) {
  // Tiles of narrow heads leave registers for more blocks side by side.
  if constexpr (sizeof(WideType<T>) == 4) {
    if (ParseAttention(context).width <= 64) return std::make_unique<KernelOf<T, 64>>(context);
  }
  return std::make_unique<KernelOf<T, kMaxWidth>>(context);
}

template <typename T>
void RegisterKernels(OpRegistry& registry) {
  registry.AddCudaKernel("multihead_attention", kDTypeOf<T>,
                         PrepareMultiheadAttention<T, AttentionKernel>, Accepts);
  registry.AddCudaKernel("multihead_attention_grad", kDTypeOf<T>,
                         PrepareMultiheadAttention<T, AttentionGradKernel>, Accepts);
}

}  // namespace

void RegisterMultiheadAttentionCuda(OpRegistry& registry) {
  RegisterKernels<float>(registry);
  RegisterKernels<double>(registry);
  RegisterKernels<BFloat16>(registry);
  RegisterKernels<Float16>(registry);
}

}  // namespace skiff
