// Attention of a head in tiles, so that the matrix of scores is never in memory as a whole.
//
// With scores s = scale · Q K' + bias, one row a query and one column a key, weights w = softmax of
// each row, and a mask of dropped weights, Out = (w · mask / (1 - p)) V. Forward goes through the
// keys tile by tile and keeps the running maximum and sum of each row (online softmax: Milakov &
// Gimelshein, arXiv 1805.02867). Backward computes the scores again, and the weights from the rows'
// maxima and sums (Dao et al., FlashAttention, arXiv 2205.14135).
//
// T is float or double, both vectorised, or BFloat16 where UsesAvx512Bf16(). For BFloat16, scores,
// statistics and sums are float32. Weights and gradients of scores are rounded before they are
// multiplied, and each result once; products take denormal numbers as zeros.
//
// The functions are single-threaded. The order of all sums depends on the sizes alone, so a row's
// results have the same bits however rows are shared out.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "framework/tensor/philox.h"
#include "operators/common/half.h"

namespace skiff {

struct AttentionSizes {
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t width = 0;  // of a head
  bool causal = false;
  // Where it is causal: the place of the first query among the keys.
  int64_t first_place = 0;

  // The queries, and the keys, of a tile; the last one may have fewer.
  static constexpr int64_t kTile = 64;

  int64_t query_tiles() const { return (queries + kTile - 1) / kTile; }
  int64_t key_tiles() const { return (keys + kTile - 1) / kTile; }
  // The first tile of queries of which one sees the key.
  int64_t FirstQueryTile(int64_t key) const {
    return causal ? std::max<int64_t>(key - first_place, 0) / kTile : 0;
  }
  // The number of keys that a query sees: from the first one on. The last query sees all that are
  // known.
  int64_t VisibleKeys(int64_t query) const { return causal ? query + 1 + first_place : keys; }
};

// Row r begins at data + r * stride. No data: the tensor is absent.
template <typename T>
struct HeadRows {
  T* data = nullptr;
  int64_t stride = 0;
};

// Rows that a later call will touch. The products of an earlier call fetch these rows into the
// second-level cache, a few at a time: the rows of a head are too short and too far apart for the
// processor to foresee, and the processor drops most of many fetches at once.
class RowsAhead {
 public:
  // `at_a_time`: the rows that are fetched for each block of a product.
  explicit RowsAhead(int64_t at_a_time = 0) : at_a_time_(at_a_time) {}

  // Adds `count` rows of `width` elements from row `first` on; nothing if the tensor is absent.
  // Takes at most kRanges of these.
  template <typename T>
  void Add(const HeadRows<T>& rows, int64_t first, int64_t count, int64_t width) {
    if (rows.data == nullptr || count <= 0) return;
    constexpr auto kSize = static_cast<int64_t>(sizeof(T));
    ranges_[static_cast<size_t>(size_++)] = {
        .row = reinterpret_cast<const char*>(rows.data + first * rows.stride),
        .stride = rows.stride * kSize,
        .rows = count,
        .bytes = width * kSize};
  }

  // Fetches the next rows.
  void Fetch() {
    constexpr int64_t kLine = 64;
    for (int64_t i = 0; i < at_a_time_ && at_ < size_; ++i) {
      Range& range = ranges_[static_cast<size_t>(at_)];
      for (int64_t byte = 0; byte < range.bytes; byte += kLine)
        __builtin_prefetch(range.row + byte, 0, 2);
      range.row += range.stride;
      if (--range.rows == 0) ++at_;
    }
  }

 private:
  static constexpr int kRanges = 8;
  struct Range {
    const char* row = nullptr;
    int64_t stride = 0;  // in bytes
    int64_t rows = 0;
    int64_t bytes = 0;
  };
  int64_t at_a_time_;
  std::array<Range, kRanges> ranges_;
  int size_ = 0;
  int at_ = 0;
};

// Which weights are dropped. Query q and key k have word first_word + q * keys + k of the Philox
// stream; the weight is dropped if that is below `threshold`. So dropout draws for a tensor of all
// weights, [batch, heads, queries, keys].
struct WeightDropout {
  RandomKey key;
  uint32_t threshold = 0;  // 0: none is dropped
  double scale = 1;        // of the weights that are kept
  uint64_t first_word = 0;
};

template <typename T>
struct HeadArguments {
  HeadRows<const T> query;
  HeadRows<const T> key;
  HeadRows<const T> value;
  HeadRows<const T> bias;  // a row a query; stride 0: one row for all
  int64_t known_keys = 0;  // the first ones, which alone are read and seen
  WideType<T> scale = 1;
  WeightDropout dropout;
};

// One row_max and row_sum for each query: the largest score and the sum of exp(score - row_max).
// Both are kept, not the logarithm of the sum of exponentials: beside a bias of -1e9 it would round
// the sum away.
template <typename T>
struct HeadOutputs {
  HeadRows<T> out;
  WideType<T>* row_max = nullptr;  // may be absent, as may row_sum
  WideType<T>* row_sum = nullptr;
};

template <typename T>
struct HeadGradients {
  HeadRows<const T> out;
  HeadRows<const T> out_gradient;
  const WideType<T>* row_max = nullptr;
  const WideType<T>* row_sum = nullptr;
  HeadRows<T> query;  // to compute, as the next ones; each may be absent
  HeadRows<T> key;
  HeadRows<T> value;
};

// A range of tiles.
struct TileRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// Returns whether the functions below exist for BFloat16: whether Highway was compiled for a target
// with AVX-512. Else they throw Error (kUnimplemented).
bool HasBFloat16Attention();

// Returns the bytes of scratch memory that the functions below need: AttendGradient and AttendTile,
// or AttendTile alone. For BFloat16, the former keeps float32 sums of all keys.
template <typename T>
int64_t AttentionScratchBytes(const AttentionSizes& sizes, bool for_gradient);

// Computes the outputs of one tile of queries. `scratch` is 64-byte aligned. Outputs, here and
// below, share no memory with inputs, which are read while outputs are written.
template <typename T>
void AttendTile(const AttentionSizes& sizes, const HeadArguments<T>& head,
                const HeadOutputs<T>& outputs, int64_t query_tile, RowsAhead* ahead, void* scratch);

// Computes the contributions of pairs of these queries and keys to gradients. A gradient of queries
// requires all keys, gradients of keys and values require all queries: they are overwritten. Keys
// that no query sees get zeros. There must be queries and keys.
template <typename T>
void AttendGradient(const AttentionSizes& sizes, const HeadArguments<T>& head,
                    const HeadGradients<T>& gradients, TileRange queries, TileRange keys,
                    RowsAhead* ahead, void* scratch);

}  // namespace skiff
