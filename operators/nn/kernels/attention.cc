#include "operators/nn/kernels/attention.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "framework/base/element_count.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/nn/kernels/attention.cc"
#include "hwy/foreach_target.h"

// After foreach_target.h, since these headers are compiled once per instruction set as well.
#include "hwy/highway.h"
#include "operators/common/philox-inl.h"
#include "operators/common/simd_math-inl.h"
#include "operators/common/transpose_lanes-inl.h"

#ifndef SKIFF_OPERATORS_NN_KERNELS_ATTENTION_ONCE_
#define SKIFF_OPERATORS_NN_KERNELS_ATTENTION_ONCE_
namespace skiff {

inline constexpr int64_t kTile = AttentionSizes::kTile;
// The elements of the widest vector. Rows of scratch memory are padded to that.
inline constexpr int64_t kPadding = 16;

inline int64_t PaddedWidth(const AttentionSizes& sizes) { return RoundUp(sizes.width, kPadding); }

// The scratch memory of a tile of queries and a tile of keys. "Rows" have an item (a query or a
// key) a row and are padded by zeros to whole vectors. "Columns" have an item a column, kTile to a
// row. Tiles have a key a row and a query a column: so the statistics of queries are vectors, and
// a tile's rows and columns are both read without packing it.
template <typename T>
struct AttentionScratch {
  AttentionScratch(const AttentionSizes& sizes, void* memory) {
    T* next = static_cast<T*>(memory);
    const int64_t matrix = PaddedWidth(sizes) * kTile;
    for (T** buffer : {&query_columns, &query_rows, &key_rows, &value_rows, &out_columns, &out_rows,
                       &query_sums, &key_sums}) {
      *buffer = next;
      next += matrix;
    }
    for (T** buffer : {&scores, &gradients}) {
      *buffer = next;
      next += kTile * kTile;
    }
    for (T** buffer : {&row_max, &row_sum, &row_factor}) {
      *buffer = next;
      next += kTile;
    }
    words = reinterpret_cast<uint32_t*>(next);
  }

  static int64_t Bytes(const AttentionSizes& sizes) {
    const int64_t matrices = MultiplyCounts(PaddedWidth(sizes), 8 * kTile);
    const int64_t tiles = 2 * kTile * kTile;
    return ByteCount(AddCounts(matrices, tiles + 3 * kTile), kDTypeOf<T>) +
           ByteCount(kTile * kTile, DType::kInt32);
  }

  T* query_columns;  // scaled
  T* query_rows;
  T* key_rows;
  T* value_rows;
  T* out_columns;  // of Out@GRAD, as out_rows
  T* out_rows;
  T* query_sums;  // rows: of Out in forward, of the queries' gradients in backward
  T* key_sums;    // rows: what a tile adds to the gradients of keys, then of values
  T* scores;      // a tile, later of weights
  T* gradients;   // a tile, of the scores
  T* row_max;
  T* row_sum;     // in backward 1 / sum
  T* row_factor;  // what earlier sums are multiplied by; in backward sum(Out · Out@GRAD)
  uint32_t* words;
};

// A tile's place among all queries and keys.
struct TileExtent {
  int64_t query = 0;  // the first one
  int64_t queries = 0;
  int64_t key = 0;
  int64_t keys = 0;
};

inline TileExtent ExtentOf(const AttentionSizes& sizes, int64_t query_tile, int64_t key_tile) {
  TileExtent extent{.query = query_tile * kTile, .key = key_tile * kTile};
  extent.queries = std::min(kTile, sizes.queries - extent.query);
  // No keys if none of the queries sees any. Otherwise all, as the first queries to see some of
  // them overwrite the gradients of the whole tile.
  const bool is_seen = sizes.VisibleKeys(extent.query + extent.queries - 1) > extent.key;
  extent.keys = is_seen ? std::min(kTile, sizes.keys - extent.key) : 0;
  return extent;
}

}  // namespace skiff
#endif

HWY_BEFORE_NAMESPACE();
namespace skiff {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
using TagOf = hn::CappedTag<T, 64 / sizeof(T)>;
template <typename T>
constexpr int64_t kLanesOf = static_cast<int64_t>(hn::MaxLanes(TagOf<T>()));

// Rows of a product whose sums stay in registers, for two vectors of columns each: 32 registers
// hold 16 sums, 16 hold 8; either covers the latency of the additions.
template <typename T>
constexpr int64_t kProductRows = kLanesOf<T> * sizeof(T) == 64 ? 8 : 4;

// ---- copies

template <typename T>
void CopyRows(const HeadRows<const T>& from, int64_t first, int64_t count, int64_t width, T* to) {
  const int64_t padded = RoundUp(width, kPadding);
  for (int64_t row = 0; row < count; ++row, to += padded) {
    std::memcpy(to, from.data + (first + row) * from.stride,
                static_cast<size_t>(width) * sizeof(T));
    std::fill(to + width, to + padded, T{0});
  }
}

template <typename T>
hn::Vec<TagOf<T>> LoadStart(const T* from, int64_t count) {
  const TagOf<T> d;
  if (count >= kLanesOf<T>) return hn::LoadU(d, from);
  HWY_ALIGN T lanes[kLanesOf<T>] = {};
  for (int64_t i = 0; i < count; ++i) lanes[i] = from[i];
  return hn::Load(d, lanes);
}

// Transposes a square of a vector's lanes, of which `rows` and `columns` are there.
HWY_INLINE void CopySquare(const float* from, int64_t stride, int64_t rows, int64_t columns,
                           float factor, float* to) {
  const FloatTag d;
  FloatVector square[kLanes];
  if (rows >= kLanes && columns >= kLanes) {
#pragma GCC unroll 16
    for (int64_t i = 0; i < kLanes; ++i) square[i] = hn::LoadU(d, from + i * stride);
  } else {
    for (int64_t i = 0; i < kLanes; ++i)
      square[i] = i < rows ? LoadStart(from + i * stride, columns) : hn::Zero(d);
  }
  TransposeLanes(square);
  const auto scale = hn::Set(d, factor);
  if (columns >= kLanes) {
#pragma GCC unroll 16
    for (int64_t i = 0; i < kLanes; ++i) hn::Store(hn::Mul(square[i], scale), d, to + i * kTile);
  } else {
    for (int64_t i = 0; i < columns; ++i) hn::Store(hn::Mul(square[i], scale), d, to + i * kTile);
  }
}

// to[c * kTile + r] = from row first + r, column c, times `factor`; 0 for rows from `count` up to a
// whole vector.
template <typename T>
void CopyColumns(const HeadRows<const T>& from, int64_t first, int64_t count, int64_t width,
                 T factor, T* to) {
  const T* source = from.data + first * from.stride;
  if constexpr (std::is_same_v<T, float>) {
    for (int64_t row = 0; row < count; row += kLanes) {
      for (int64_t column = 0; column < width; column += kLanes)
        CopySquare(source + row * from.stride + column, from.stride, count - row, width - column,
                   factor, to + column * kTile + row);
    }
  } else {
    const int64_t padded = RoundUp(count, kPadding);
    for (int64_t column = 0; column < width; ++column) {
      for (int64_t row = 0; row < padded; ++row) {
        to[column * kTile + row] = row < count ? source[row * from.stride + column] * factor : T{0};
      }
    }
  }
}

// to = factor * from, or to += factor * from, for `count` rows.
template <typename T>
void StoreRows(const T* from, T factor, bool add, int64_t count, int64_t width, int64_t first,
               const HeadRows<T>& to) {
  const TagOf<T> d;
  const auto factors = hn::Set(d, factor);
  for (int64_t row = 0; row < count; ++row, from += RoundUp(width, kPadding)) {
    T* line = to.data + (first + row) * to.stride;
    int64_t i = 0;
    for (; i + kLanesOf<T> <= width; i += kLanesOf<T>) {
      const auto product = hn::Mul(hn::Load(d, from + i), factors);
      hn::StoreU(add ? hn::Add(hn::LoadU(d, line + i), product) : product, d, line + i);
    }
    for (; i < width; ++i) line[i] = add ? line[i] + from[i] * factor : from[i] * factor;
  }
}

// ---- products

// The left factor of a product: element (r, p) is data[r * stride + p], or data[r + p * kTile] if
// kByColumns.
template <bool kByColumns, typename T>
struct LeftFactor {
  const T* data;
  int64_t stride = 1;  // of rows

  LeftFactor From(int64_t row) const { return {data + row * stride, stride}; }
};

// c = a · b, or c += a · b, for kProductRows rows and kVectors vectors of columns. Each element is
// summed from zero, whatever it is then added to.
template <int kVectors, bool kByColumns, typename T>
void MultiplyBlock(const LeftFactor<kByColumns, T>& a, const T* b, int64_t b_stride, int64_t depth,
                   bool add, T* c, int64_t c_stride) {
  const TagOf<T> d;
  constexpr int64_t kRows = kProductRows<T>;
  const T* left = a.data;
  const int64_t row_step = kByColumns ? 1 : a.stride;
  hn::Vec<TagOf<T>> sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int64_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) sums[r][j] = hn::Zero(d);
  }
  for (int64_t p = 0; p < depth; ++p, left += kByColumns ? kTile : 1, b += b_stride) {
    hn::Vec<TagOf<T>> column[kVectors];
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) column[j] = hn::Load(d, b + j * kLanesOf<T>);
#pragma GCC unroll 8
    for (int64_t r = 0; r < kRows; ++r) {
      const auto value = hn::Set(d, left[r * row_step]);
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) sums[r][j] = hn::MulAdd(value, column[j], sums[r][j]);
    }
  }
#pragma GCC unroll 8
  for (int64_t r = 0; r < kRows; ++r, c += c_stride) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) {
      T* to = c + j * kLanesOf<T>;
      hn::Store(add ? hn::Add(hn::Load(d, to), sums[r][j]) : sums[r][j], d, to);
    }
  }
}

// The product of a left factor and a matrix. Writes whole blocks: rows and columns beyond `rows`
// and `columns` get values of no meaning. b and c have rows of whole vectors.
template <bool kByColumns, typename T>
void Multiply(const LeftFactor<kByColumns, T>& a, const T* b, int64_t b_stride, int64_t rows,
              int64_t columns, int64_t depth, bool add, T* c, int64_t c_stride) {
  for (int64_t row = 0; row < rows; row += kProductRows<T>, c += kProductRows<T> * c_stride) {
    int64_t column = 0;
    for (; columns - column > kLanesOf<T>; column += 2 * kLanesOf<T>)
      MultiplyBlock<2>(a.From(row), b + column, b_stride, depth, add, c + column, c_stride);
    if (column < columns)
      MultiplyBlock<1>(a.From(row), b + column, b_stride, depth, add, c + column, c_stride);
  }
}

template <typename T>
LeftFactor<true, T> Columns(const T* data) {
  return {data};
}
template <typename T>
LeftFactor<false, T> Rows(const T* data, int64_t stride) {
  return {data, stride};
}

// `count` rows as a left factor: where they are, if they make whole blocks, else as a copy.
template <typename T>
LeftFactor<false, T> RowsFrom(const HeadRows<const T>& from, int64_t first, int64_t count,
                              int64_t width, T* copy) {
  if (count % kProductRows<T> == 0) return {from.data + first * from.stride, from.stride};
  CopyRows(from, first, count, width, copy);
  return {copy, RoundUp(width, kPadding)};
}

// ---- dropout

using Words = hn::CappedTag<uint32_t, 16>;

// The words of a stream, four for each lane at a time. Lanes begin at different words.
class LaneWords {
 public:
  // Lane i begins at word first + i * step.
  LaneWords(const RandomKey& key, uint64_t first, uint64_t step) : key_(key) {
    const Words d;
    HWY_ALIGN uint32_t low[kLanesOf<uint32_t>];
    HWY_ALIGN uint32_t high[kLanesOf<uint32_t>];
    HWY_ALIGN uint32_t shift[kLanesOf<uint32_t>];
    uint32_t any = 0;
    for (int64_t i = 0; i < kLanesOf<uint32_t>; ++i) {
      const uint64_t word = first + static_cast<uint64_t>(i) * step;
      low[i] = static_cast<uint32_t>(word / 4);
      high[i] = static_cast<uint32_t>(word / 4 >> 32);
      shift[i] = static_cast<uint32_t>(word % 4);
      any |= shift[i];
    }
    low_ = hn::Load(d, low);
    high_ = hn::Load(d, high);
    shift_ = hn::Load(d, shift);
    is_aligned_ = any == 0;
    if (!is_aligned_) Draw(drawn_ + 4);
  }

  // Writes the next words: `count` of them, at most four, a vector each, kTile apart.
  void Next(int64_t count, uint32_t* to) {
    const Words d;
    if (is_aligned_) {
      Draw(drawn_);
    } else {
      std::copy(drawn_ + 4, drawn_ + 8, drawn_);
      Draw(drawn_ + 4);
    }
    for (int64_t i = 0; i < count; ++i, to += kTile) {
      auto word = drawn_[i];
      for (uint32_t shift = 1; shift < 4 && !is_aligned_; ++shift)
        word = hn::IfThenElse(hn::Eq(shift_, hn::Set(d, shift)), drawn_[i + shift], word);
      hn::Store(word, d, to);
    }
  }

 private:
  void Draw(hn::Vec<Words>* to) {
    const Words d;
    PhiloxBlocks(d, key_, low_, high_, to);
    low_ = hn::Add(low_, hn::Set(d, 1));
    const auto carries = hn::Eq(low_, hn::Zero(d));
    high_ = hn::IfThenElse(carries, hn::Add(high_, hn::Set(d, 1)), high_);
  }

  RandomKey key_;
  hn::Vec<Words> low_;
  hn::Vec<Words> high_;
  hn::Vec<Words> shift_;
  hn::Vec<Words> drawn_[8];
  bool is_aligned_;
};

// The words of a tile.
void DrawWords(const WeightDropout& dropout, const AttentionSizes& sizes, const TileExtent& tile,
               uint32_t* words) {
  if (dropout.threshold == 0) return;
  const auto keys = static_cast<uint64_t>(sizes.keys);
  for (int64_t q = 0; q < tile.queries; q += kLanesOf<uint32_t>) {
    const auto query = static_cast<uint64_t>(tile.query + q);
    LaneWords lanes(dropout.key,
                    dropout.first_word + query * keys + static_cast<uint64_t>(tile.key), keys);
    for (int64_t k = 0; k < tile.keys; k += 4)
      lanes.Next(std::min<int64_t>(4, tile.keys - k), words + k * kTile + q);
  }
}

// Which of the lanes' words say that a weight is dropped.
template <class D>
HWY_INLINE hn::Mask<D> DroppedLanes(D d, const uint32_t* words, uint32_t threshold) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    const hn::RebindToUnsigned<D> d_words;
    return hn::RebindMask(d, hn::Lt(hn::Load(d_words, words), hn::Set(d_words, threshold)));
  } else {
    const hn::Rebind<uint32_t, D> d_words;
    const hn::RebindToUnsigned<D> d_wide;
    const auto wide = hn::PromoteTo(d_wide, hn::Load(d_words, words));
    return hn::RebindMask(d, hn::Lt(wide, hn::Set(d_wide, uint64_t{threshold})));
  }
}

// ---- scores

// The scores of a tile but for a bias of one row for all queries, which its readers add.
template <typename T>
void ScoreTile(const AttentionSizes& sizes, const HeadArguments<T>& head, const TileExtent& tile,
               const LeftFactor<false, T>& keys, const AttentionScratch<T>& scratch) {
  const bool has_matrix = head.bias.data != nullptr && head.bias.stride != 0;
  if (has_matrix) {
    const HeadRows<const T> bias{head.bias.data + tile.key, head.bias.stride};
    CopyColumns(bias, tile.query, tile.queries, tile.keys, T{1}, scratch.scores);
  }
  Multiply(keys, scratch.query_columns, kTile, tile.keys, tile.queries, sizes.width, has_matrix,
           scratch.scores, kTile);
  if (!sizes.causal) return;
  for (int64_t k = 0; k < tile.keys; ++k) {
    // The first query that sees the key.
    const int64_t first = tile.key + k - (sizes.keys - sizes.queries);
    const int64_t hidden = std::clamp<int64_t>(first - tile.query, 0, kTile);
    std::fill_n(scratch.scores + k * kTile, hidden, -std::numeric_limits<T>::infinity());
  }
}

// The bias of each key of a tile if it is the same for all queries, else nullptr.
template <typename T>
const T* KeyBias(const HeadArguments<T>& head, const TileExtent& tile) {
  if (head.bias.data == nullptr || head.bias.stride != 0) return nullptr;
  return head.bias.data + tile.key;
}

// exp(x) for x <= 0, up to rounding: weights are at most 1.
template <class D, class V>
HWY_INLINE V WeightOf(D d, V x) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return ExpOfNegative(d, x);
  } else {
    return ExpOf(d, x);
  }
}

// Makes weights of a vector of queries' scores, and updates the statistics of these queries.
template <typename T>
void SoftmaxLanes(const WeightDropout& dropout, const T* key_bias, int64_t keys, int64_t q,
                  const AttentionScratch<T>& scratch) {
  const TagOf<T> d;
  const auto lowest = hn::Set(d, -std::numeric_limits<T>::infinity());
  T* scores = scratch.scores + q;
  const auto before = hn::Load(d, scratch.row_max + q);
  auto top = before;
  for (int64_t k = 0; k < keys; ++k) {
    auto score = hn::Load(d, scores + k * kTile);
    if (key_bias != nullptr) {
      score = hn::Add(score, hn::Set(d, key_bias[k]));
      hn::Store(score, d, scores + k * kTile);
    }
    top = hn::Max(top, score);
  }
  // Where all scores so far are -inf, all exponentials are 0.
  const auto shift = hn::IfThenElse(hn::Eq(top, lowest), hn::Zero(d), top);
  const auto factor = WeightOf(d, hn::Sub(before, shift));
  auto sum = hn::Mul(hn::Load(d, scratch.row_sum + q), factor);
  for (int64_t k = 0; k < keys; ++k) {
    auto weight = WeightOf(d, hn::Sub(hn::Load(d, scores + k * kTile), shift));
    sum = hn::Add(sum, weight);
    if (dropout.threshold != 0) {
      const auto dropped = DroppedLanes(d, scratch.words + k * kTile + q, dropout.threshold);
      weight = hn::IfThenZeroElse(dropped, weight);
    }
    hn::Store(weight, d, scores + k * kTile);
  }
  hn::Store(top, d, scratch.row_max + q);
  hn::Store(sum, d, scratch.row_sum + q);
  hn::Store(factor, d, scratch.row_factor + q);
}

// ---- forward

template <typename T>
void ScaleRows(int64_t count, int64_t padded, const T* factors, T* rows) {
  const TagOf<T> d;
  for (int64_t row = 0; row < count; ++row, rows += padded) {
    const auto factor = hn::Set(d, factors[row]);
    for (int64_t i = 0; i < padded; i += kLanesOf<T>)
      hn::Store(hn::Mul(hn::Load(d, rows + i), factor), d, rows + i);
  }
}

// Divides the sums of a tile of queries by those of its weights.
template <typename T>
void StoreOutputs(const AttentionSizes& sizes, double scale, const TileExtent& tile,
                  const AttentionScratch<T>& scratch, const HeadOutputs<T>& outputs) {
  for (int64_t q = 0; q < tile.queries; ++q) {
    // Without keys the sums over them are empty: 0, not 0 / 0.
    scratch.row_factor[q] = sizes.keys == 0 ? T{0} : static_cast<T>(scale) / scratch.row_sum[q];
  }
  ScaleRows(tile.queries, PaddedWidth(sizes), scratch.row_factor, scratch.query_sums);
  StoreRows(scratch.query_sums, T{1}, false, tile.queries, sizes.width, tile.query, outputs.out);
  if (outputs.row_max != nullptr)
    std::copy_n(scratch.row_max, tile.queries, outputs.row_max + tile.query);
  if (outputs.row_sum != nullptr)
    std::copy_n(scratch.row_sum, tile.queries, outputs.row_sum + tile.query);
}

template <typename T>
void ForwardImpl(const AttentionSizes& sizes, const HeadArguments<T>& head,
                 const HeadOutputs<T>& outputs, int64_t query_tile, void* memory) {
  const AttentionScratch<T> scratch(sizes, memory);
  const int64_t padded = PaddedWidth(sizes);
  TileExtent tile = ExtentOf(sizes, query_tile, 0);
  CopyColumns(head.query, tile.query, tile.queries, sizes.width, head.scale, scratch.query_columns);
  std::fill_n(scratch.row_max, kTile, -std::numeric_limits<T>::infinity());
  std::fill_n(scratch.row_sum, kTile, T{0});
  std::fill_n(scratch.query_sums, tile.queries * padded, T{0});
  for (int64_t k = 0; k < sizes.key_tiles(); ++k) {
    tile = ExtentOf(sizes, query_tile, k);
    if (tile.keys == 0) break;
    const auto keys = RowsFrom(head.key, tile.key, tile.keys, sizes.width, scratch.key_rows);
    CopyRows(head.value, tile.key, tile.keys, sizes.width, scratch.value_rows);
    ScoreTile(sizes, head, tile, keys, scratch);
    DrawWords(head.dropout, sizes, tile, scratch.words);
    for (int64_t q = 0; q < tile.queries; q += kLanesOf<T>)
      SoftmaxLanes(head.dropout, KeyBias(head, tile), tile.keys, q, scratch);
    if (k > 0) ScaleRows(tile.queries, padded, scratch.row_factor, scratch.query_sums);
    Multiply(Columns(scratch.scores), scratch.value_rows, padded, tile.queries, padded, tile.keys,
             k > 0, scratch.query_sums, padded);
  }
  StoreOutputs(sizes, head.dropout.scale, tile, scratch, outputs);
}

// ---- backward

// Loads what the gradients of a tile of queries need besides keys and values.
template <typename T>
void LoadQueries(const AttentionSizes& sizes, const HeadArguments<T>& head,
                 const HeadGradients<T>& gradients, const TileExtent& tile,
                 const AttentionScratch<T>& scratch) {
  const TagOf<T> d;
  CopyColumns(head.query, tile.query, tile.queries, sizes.width, head.scale, scratch.query_columns);
  CopyRows(head.query, tile.query, tile.queries, sizes.width, scratch.query_rows);
  CopyColumns(gradients.out_gradient, tile.query, tile.queries, sizes.width, T{1},
              scratch.out_columns);
  CopyRows(gradients.out_gradient, tile.query, tile.queries, sizes.width, scratch.out_rows);
  std::fill_n(scratch.row_max, kTile, T{0});
  std::fill_n(scratch.row_sum, kTile, T{1});
  std::fill_n(scratch.row_factor, kTile, T{0});
  for (int64_t q = 0; q < tile.queries; ++q) {
    const int64_t query = tile.query + q;
    scratch.row_max[q] = gradients.row_max[query];
    scratch.row_sum[q] = 1 / gradients.row_sum[query];
    const T* out = gradients.out.data + query * gradients.out.stride;
    const T* gradient = scratch.out_rows + q * PaddedWidth(sizes);
    auto sum = hn::Zero(d);
    for (int64_t i = 0; i < sizes.width; i += kLanesOf<T>)
      sum = hn::MulAdd(LoadStart(out + i, sizes.width - i), hn::Load(d, gradient + i), sum);
    scratch.row_factor[q] = hn::GetLane(hn::SumOfLanes(d, sum));
  }
}

// Makes of scores the weights that Out was summed with, and of the gradients of these the gradients
// of the scores, for a vector of queries.
template <typename T>
void SoftmaxGradLanes(const WeightDropout& dropout, const T* key_bias, int64_t keys, int64_t q,
                      const AttentionScratch<T>& scratch) {
  const TagOf<T> d;
  const auto top = hn::Load(d, scratch.row_max + q);
  const auto inverse = hn::Load(d, scratch.row_sum + q);
  const auto mean = hn::Load(d, scratch.row_factor + q);
  const auto kept_scale = hn::Set(d, static_cast<T>(dropout.scale));
  for (int64_t k = 0; k < keys; ++k) {
    const int64_t at = k * kTile + q;
    auto score = hn::Load(d, scratch.scores + at);
    if (key_bias != nullptr) score = hn::Add(score, hn::Set(d, key_bias[k]));
    const auto weight = hn::Mul(WeightOf(d, hn::Sub(score, top)), inverse);
    auto kept = weight;
    auto gradient = hn::Load(d, scratch.gradients + at);
    if (dropout.threshold != 0) {
      const auto dropped = DroppedLanes(d, scratch.words + at, dropout.threshold);
      kept = hn::IfThenZeroElse(dropped, hn::Mul(weight, kept_scale));
      gradient = hn::IfThenZeroElse(dropped, hn::Mul(gradient, kept_scale));
    }
    hn::Store(kept, d, scratch.scores + at);
    hn::Store(hn::Mul(weight, hn::Sub(gradient, mean)), d, scratch.gradients + at);
  }
}

// Adds the contributions of one tile, for which everything is loaded, or overwrites gradients with
// them: those of queries by the first keys, those of keys and values by the first queries.
template <typename T>
void AddGradients(const AttentionSizes& sizes, const HeadArguments<T>& head,
                  const HeadGradients<T>& gradients, const TileExtent& tile,
                  const AttentionScratch<T>& scratch) {
  const int64_t padded = PaddedWidth(sizes);
  const bool has_more_queries = tile.query / kTile > sizes.FirstQueryTile(tile.key);
  const auto add_of_keys = [&](const T* weights, const T* rows, T factor, const HeadRows<T>& to) {
    if (to.data == nullptr) return;
    Multiply(Rows(weights, kTile), rows, padded, tile.keys, padded, tile.queries, false,
             scratch.key_sums, padded);
    StoreRows(scratch.key_sums, factor, has_more_queries, tile.keys, sizes.width, tile.key, to);
  };
  add_of_keys(scratch.scores, scratch.out_rows, T{1}, gradients.value);
  add_of_keys(scratch.gradients, scratch.query_rows, head.scale, gradients.key);
  if (gradients.query.data == nullptr) return;
  Multiply(Columns(scratch.gradients), scratch.key_rows, padded, tile.queries, padded, tile.keys,
           tile.key > 0, scratch.query_sums, padded);
}

template <typename T>
void BackwardImpl(const AttentionSizes& sizes, const HeadArguments<T>& head,
                  const HeadGradients<T>& gradients, TileRange queries, TileRange keys,
                  void* memory) {
  const AttentionScratch<T> scratch(sizes, memory);
  const int64_t padded = PaddedWidth(sizes);
  for (int64_t query = queries.begin; query < queries.end; ++query) {
    TileExtent tile = ExtentOf(sizes, query, keys.begin);
    if (tile.keys == 0) continue;
    LoadQueries(sizes, head, gradients, tile, scratch);
    for (int64_t key = keys.begin; key < keys.end; ++key) {
      tile = ExtentOf(sizes, query, key);
      if (tile.keys == 0) break;
      CopyRows(head.key, tile.key, tile.keys, sizes.width, scratch.key_rows);
      ScoreTile(sizes, head, tile, Rows(scratch.key_rows, padded), scratch);
      const auto values =
          RowsFrom(head.value, tile.key, tile.keys, sizes.width, scratch.value_rows);
      Multiply(values, scratch.out_columns, kTile, tile.keys, tile.queries, sizes.width, false,
               scratch.gradients, kTile);
      DrawWords(head.dropout, sizes, tile, scratch.words);
      for (int64_t q = 0; q < tile.queries; q += kLanesOf<T>)
        SoftmaxGradLanes(head.dropout, KeyBias(head, tile), tile.keys, q, scratch);
      AddGradients(sizes, head, gradients, tile, scratch);
    }
    if (gradients.query.data != nullptr)
      StoreRows(scratch.query_sums, head.scale, false, tile.queries, sizes.width, tile.query,
                gradients.query);
  }
}

void ForwardFloat(const AttentionSizes& sizes, const HeadArguments<float>& head,
                  const HeadOutputs<float>& outputs, int64_t query_tile, void* scratch) {
  ForwardImpl(sizes, head, outputs, query_tile, scratch);
}

void ForwardDouble(const AttentionSizes& sizes, const HeadArguments<double>& head,
                   const HeadOutputs<double>& outputs, int64_t query_tile, void* scratch) {
  ForwardImpl(sizes, head, outputs, query_tile, scratch);
}

void BackwardFloat(const AttentionSizes& sizes, const HeadArguments<float>& head,
                   const HeadGradients<float>& gradients, TileRange queries, TileRange keys,
                   void* scratch) {
  BackwardImpl(sizes, head, gradients, queries, keys, scratch);
}

void BackwardDouble(const AttentionSizes& sizes, const HeadArguments<double>& head,
                    const HeadGradients<double>& gradients, TileRange queries, TileRange keys,
                    void* scratch) {
  BackwardImpl(sizes, head, gradients, queries, keys, scratch);
}

}  // namespace HWY_NAMESPACE
}  // namespace skiff
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(ForwardFloat);
HWY_EXPORT(ForwardDouble);
HWY_EXPORT(BackwardFloat);
HWY_EXPORT(BackwardDouble);

template <typename T>
int64_t AttentionScratchBytes(const AttentionSizes& sizes) {
  return AttentionScratch<T>::Bytes(sizes);
}

template <>
void AttendTile(const AttentionSizes& sizes, const HeadArguments<float>& head,
                const HeadOutputs<float>& outputs, int64_t query_tile, void* scratch) {
  HWY_DYNAMIC_DISPATCH(ForwardFloat)(sizes, head, outputs, query_tile, scratch);
}

template <>
void AttendTile(const AttentionSizes& sizes, const HeadArguments<double>& head,
                const HeadOutputs<double>& outputs, int64_t query_tile, void* scratch) {
  HWY_DYNAMIC_DISPATCH(ForwardDouble)(sizes, head, outputs, query_tile, scratch);
}

template <>
void AttendGradient(const AttentionSizes& sizes, const HeadArguments<float>& head,
                    const HeadGradients<float>& gradients, TileRange queries, TileRange keys,
                    void* scratch) {
  HWY_DYNAMIC_DISPATCH(BackwardFloat)(sizes, head, gradients, queries, keys, scratch);
}

template <>
void AttendGradient(const AttentionSizes& sizes, const HeadArguments<double>& head,
                    const HeadGradients<double>& gradients, TileRange queries, TileRange keys,
                    void* scratch) {
  HWY_DYNAMIC_DISPATCH(BackwardDouble)(sizes, head, gradients, queries, keys, scratch);
}

template int64_t AttentionScratchBytes<float>(const AttentionSizes&);
template int64_t AttentionScratchBytes<double>(const AttentionSizes&);

}  // namespace skiff
#endif  // HWY_ONCE
