// Attention of a tile of queries: one tile of keys after the other changes the running sums.
#include <algorithm>
#include <limits>

#include "operators/nn/attention/head_attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/nn/attention/attention_forward.cc"
#include "hwy/foreach_target.h"

// After foreach_target.h, since these headers are compiled once per instruction set as well.
#include "hwy/highway.h"
#include "operators/nn/attention/attention_dropout-inl.h"
#include "operators/nn/attention/attention_products-inl.h"
#include "operators/nn/attention/attention_scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

// Makes weights of the scores of some vectors of queries, and updates the statistics of these
// queries. Several vectors hide the latency of each other's maxima and sums.
template <int kVectors, typename T>
void SoftmaxLanes(const WeightDropout& dropout, const T* key_bias, int64_t keys, int64_t q,
                  const AttentionScratch<T>& scratch) {
  const TagOf<T> d;
  using Vector = hn::Vec<TagOf<T>>;
  const auto lowest = hn::Set(d, -std::numeric_limits<T>::infinity());
  T* scores = scratch.scores + q;
  Vector before[kVectors];
  Vector top[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v)
    top[v] = before[v] = hn::Load(d, scratch.row_max + q + v * kLanesOf<T>);
  for (int64_t k = 0; k < keys; ++k) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      T* at = scores + k * kTile + v * kLanesOf<T>;
      auto score = hn::Load(d, at);
      if (key_bias != nullptr) {
        score = hn::Add(score, hn::Set(d, key_bias[k]));
        hn::Store(score, d, at);
      }
      top[v] = hn::Max(top[v], score);
    }
  }
  Vector shift[kVectors];
  Vector sum[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    // Where all scores so far are -inf, all exponentials are 0.
    shift[v] = hn::IfThenElse(hn::Eq(top[v], lowest), hn::Zero(d), top[v]);
    const auto factor = WeightOf(d, hn::Sub(before[v], shift[v]));
    const int64_t at = q + v * kLanesOf<T>;
    sum[v] = hn::Mul(hn::Load(d, scratch.row_sum + at), factor);
    hn::Store(top[v], d, scratch.row_max + at);
    hn::Store(factor, d, scratch.row_factor + at);
  }
  for (int64_t k = 0; k < keys; ++k) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const int64_t at = k * kTile + v * kLanesOf<T>;
      auto weight = WeightOf(d, hn::Sub(hn::Load(d, scores + at), shift[v]));
      sum[v] = hn::Add(sum[v], weight);
      if (dropout.threshold != 0) {
        const auto dropped = DroppedLanes(d, scratch.words + q + at, dropout.threshold);
        weight = hn::IfThenZeroElse(dropped, weight);
      }
      hn::Store(weight, d, scores + at);
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) hn::Store(sum[v], d, scratch.row_sum + q + v * kLanesOf<T>);
}

// Divides the sums of a tile of queries by those of its weights.
template <typename T>
void StoreOutputs(const AttentionSizes& sizes, const HeadArguments<T>& head, const TileExtent& tile,
                  const AttentionScratch<T>& scratch, const HeadOutputs<T>& outputs) {
  const auto scale = static_cast<T>(head.dropout.scale);
  for (int64_t q = 0; q < tile.queries; ++q) {
    // Without keys the sums over them are empty: 0, not 0 / 0.
    scratch.row_factor[q] = head.known_keys == 0 ? T{0} : scale / scratch.row_sum[q];
  }
  if (head.known_keys == 0)
    std::fill_n(scratch.query_sums, tile.queries * PaddedWidth(sizes), T{0});
  StoreRows(scratch.query_sums, T{1}, scratch.row_factor, false, tile.queries, sizes.width,
            tile.query, outputs.out);
  if (outputs.row_max != nullptr)
    std::copy_n(scratch.row_max, tile.queries, outputs.row_max + tile.query);
  if (outputs.row_sum != nullptr)
    std::copy_n(scratch.row_sum, tile.queries, outputs.row_sum + tile.query);
}

template <typename T>
void ForwardImpl(const AttentionSizes& sizes, const HeadArguments<T>& head,
                 const HeadOutputs<T>& outputs, int64_t query_tile, RowsAhead* ahead,
                 void* memory) {
  const AttentionScratch<T> scratch(sizes, memory);
  const int64_t padded = PaddedWidth(sizes);
  TileExtent tile = ExtentOf(sizes, head.known_keys, query_tile, 0);
  CopyColumns(head.query, tile.query, tile.queries, sizes.width, head.scale, scratch.query_columns);
  std::fill_n(scratch.row_max, kTile, -std::numeric_limits<T>::infinity());
  std::fill_n(scratch.row_sum, kTile, T{0});
  for (int64_t k = 0; k < sizes.key_tiles(); ++k) {
    tile = ExtentOf(sizes, head.known_keys, query_tile, k);
    if (tile.keys == 0) break;
    const auto keys = LeftRows(head.key, tile.key, tile.keys, sizes.width, scratch.key_rows);
    const auto values = RightRows(head.value, tile.key, tile.keys, sizes.width, scratch.value_rows);
    ScoreTile(sizes, head, tile, keys, scratch, ahead);
    DrawWords(head.dropout, sizes, tile, scratch.words);
    int64_t q = 0;
    for (; tile.queries - q > 3 * kLanesOf<T>; q += 4 * kLanesOf<T>)
      SoftmaxLanes<4>(head.dropout, KeyBias(head, tile), tile.keys, q, scratch);
    for (; q < tile.queries; q += kLanesOf<T>)
      SoftmaxLanes<1>(head.dropout, KeyBias(head, tile), tile.keys, q, scratch);
    Multiply(Columns(scratch.scores), values, tile.queries, padded, tile.keys,
             ProductSums<T>{.data = scratch.query_sums,
                            .stride = padded,
                            .add = k > 0,
                            .row_factors = scratch.row_factor},
             ahead);
  }
  StoreOutputs(sizes, head, tile, scratch, outputs);
}

void ForwardFloat(const AttentionSizes& sizes, const HeadArguments<float>& head,
                  const HeadOutputs<float>& outputs, int64_t query_tile, RowsAhead* ahead,
                  void* scratch) {
  ForwardImpl(sizes, head, outputs, query_tile, ahead, scratch);
}

void ForwardDouble(const AttentionSizes& sizes, const HeadArguments<double>& head,
                   const HeadOutputs<double>& outputs, int64_t query_tile, RowsAhead* ahead,
                   void* scratch) {
  ForwardImpl(sizes, head, outputs, query_tile, ahead, scratch);
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(ForwardFloat);
HWY_EXPORT(ForwardDouble);

template <typename T>
int64_t AttentionScratchBytes(const AttentionSizes& sizes, bool /*for_gradient*/) {
  return AttentionScratch<T>::Bytes(sizes);
}

template <>
void AttendTile(const AttentionSizes& sizes, const HeadArguments<float>& head,
                const HeadOutputs<float>& outputs, int64_t query_tile, RowsAhead* ahead,
                void* scratch) {
  HWY_DYNAMIC_DISPATCH(ForwardFloat)(sizes, head, outputs, query_tile, ahead, scratch);
}

template <>
void AttendTile(const AttentionSizes& sizes, const HeadArguments<double>& head,
                const HeadOutputs<double>& outputs, int64_t query_tile, RowsAhead* ahead,
                void* scratch) {
  HWY_DYNAMIC_DISPATCH(ForwardDouble)(sizes, head, outputs, query_tile, ahead, scratch);
}

template int64_t AttentionScratchBytes<float>(const AttentionSizes&, bool);
template int64_t AttentionScratchBytes<double>(const AttentionSizes&, bool);

}  // namespace skiff
#endif  // HWY_ONCE
