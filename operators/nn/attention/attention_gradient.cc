// Gradients of attention: what pairs of tiles contribute, from scores that are computed again.
#include <algorithm>

#include "operators/nn/attention/head_attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/nn/attention/attention_gradient.cc"
#include "hwy/foreach_target.h"

// After foreach_target.h, since these headers are compiled once per instruction set as well.
#include "hwy/highway.h"
#include "operators/nn/attention/attention_dropout-inl.h"
#include "operators/nn/attention/attention_products-inl.h"
#include "operators/nn/attention/attention_scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

// A tile of queries, and of Out@GRAD, as right factors.
template <typename T>
struct QueryRows {
  RightFactor<T> query;
  RightFactor<T> out;
};

// Loads what the gradients of a tile of queries need besides keys and values.
template <typename T>
QueryRows<T> LoadQueries(const AttentionSizes& sizes, const HeadArguments<T>& head,
                         const HeadGradients<T>& gradients, const TileExtent& tile,
                         const AttentionScratch<T>& scratch) {
  const TagOf<T> d;
  CopyColumns(head.query, tile.query, tile.queries, sizes.width, head.scale, scratch.query_columns);
  CopyColumns(gradients.out_gradient, tile.query, tile.queries, sizes.width, T{1},
              scratch.out_columns);
  const QueryRows<T> rows = {
      RightRows(head.query, tile.query, tile.queries, sizes.width, scratch.query_rows),
      RightRows(gradients.out_gradient, tile.query, tile.queries, sizes.width, scratch.out_rows)};
  std::fill_n(scratch.row_max, kTile, T{0});
  std::fill_n(scratch.row_sum, kTile, T{1});
  std::fill_n(scratch.row_factor, kTile, T{0});
  for (int64_t q = 0; q < tile.queries; ++q) {
    const int64_t query = tile.query + q;
    scratch.row_max[q] = gradients.row_max[query];
    scratch.row_sum[q] = 1 / gradients.row_sum[query];
    const T* out = gradients.out.data + query * gradients.out.stride;
    const T* gradient = rows.out.data + q * rows.out.stride;
    auto sum = hn::Zero(d);
    for (int64_t i = 0; i < sizes.width; i += kLanesOf<T>)
      sum = hn::MulAdd(LoadStart(out + i, sizes.width - i), hn::LoadU(d, gradient + i), sum);
    scratch.row_factor[q] = hn::GetLane(hn::SumOfLanes(d, sum));
  }
  return rows;
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
                  const QueryRows<T>& rows, const AttentionScratch<T>& scratch, RowsAhead* ahead) {
  const bool has_more_queries = tile.query / kTile > sizes.FirstQueryTile(tile.key);
  const auto add_of_keys = [&](const T* weights, const RightFactor<T>& of_queries, T factor,
                               const HeadRows<T>& to) {
    if (to.data == nullptr) return;
    MultiplyInto(Rows(weights, kTile), of_queries, tile.queries, factor, has_more_queries, tile.key,
                 tile.keys, sizes.width, to, scratch.sums, ahead);
  };
  add_of_keys(scratch.scores, rows.out, T{1}, gradients.value);
  add_of_keys(scratch.gradients, rows.query, head.scale, gradients.key);
  if (gradients.query.data == nullptr) return;
  MultiplyInto(Columns(scratch.gradients),
               RightRows(head.key, tile.key, tile.keys, sizes.width, scratch.key_rows), tile.keys,
               head.scale, tile.key > 0, tile.query, tile.queries, sizes.width, gradients.query,
               scratch.sums, ahead);
}

template <typename T>
void ClearRows(const HeadRows<T>& rows, int64_t begin, int64_t end, int64_t width) {
  if (rows.data == nullptr) return;
  for (int64_t row = begin; row < end; ++row)
    std::fill_n(rows.data + row * rows.stride, width, T{0});
}

// Clears the gradients that no pair contributes to: of keys that are not known, and of queries
// where none is.
template <typename T>
void ClearUnseen(const AttentionSizes& sizes, const HeadArguments<T>& head,
                 const HeadGradients<T>& gradients, TileRange queries, TileRange keys) {
  const int64_t unknown = std::max(head.known_keys, keys.begin * kTile);
  for (const HeadRows<T>& rows : {gradients.key, gradients.value})
    ClearRows(rows, unknown, std::min(sizes.keys, keys.end * kTile), sizes.width);
  if (head.known_keys > 0) return;
  ClearRows(gradients.query, queries.begin * kTile, std::min(sizes.queries, queries.end * kTile),
            sizes.width);
}

template <typename T>
void BackwardImpl(const AttentionSizes& sizes, const HeadArguments<T>& head,
                  const HeadGradients<T>& gradients, TileRange queries, TileRange keys,
                  RowsAhead* ahead, void* memory) {
  const AttentionScratch<T> scratch(sizes, memory);
  ClearUnseen(sizes, head, gradients, queries, keys);
  for (int64_t query = queries.begin; query < queries.end; ++query) {
    TileExtent tile = ExtentOf(sizes, head.known_keys, query, keys.begin);
    if (tile.keys == 0) continue;
    const auto rows = LoadQueries(sizes, head, gradients, tile, scratch);
    for (int64_t key = keys.begin; key < keys.end; ++key) {
      tile = ExtentOf(sizes, head.known_keys, query, key);
      if (tile.keys == 0) break;
      const auto key_factor =
          LeftRows(head.key, tile.key, tile.keys, sizes.width, scratch.key_rows);
      ScoreTile(sizes, head, tile, key_factor, scratch, ahead);
      const auto values =
          LeftRows(head.value, tile.key, tile.keys, sizes.width, scratch.value_rows);
      Multiply(values, RightFactor<T>{scratch.out_columns, kTile}, tile.keys, tile.queries,
               sizes.width, ProductSums<T>{.data = scratch.gradients, .stride = kTile}, ahead);
      DrawWords(head.dropout, sizes, tile, scratch.words);
      for (int64_t q = 0; q < tile.queries; q += kLanesOf<T>)
        SoftmaxGradLanes(head.dropout, KeyBias(head, tile), tile.keys, q, scratch);
      AddGradients(sizes, head, gradients, tile, rows, scratch, ahead);
    }
  }
}

void BackwardFloat(const AttentionSizes& sizes, const HeadArguments<float>& head,
                   const HeadGradients<float>& gradients, TileRange queries, TileRange keys,
                   RowsAhead* ahead, void* scratch) {
  BackwardImpl(sizes, head, gradients, queries, keys, ahead, scratch);
}

void BackwardDouble(const AttentionSizes& sizes, const HeadArguments<double>& head,
                    const HeadGradients<double>& gradients, TileRange queries, TileRange keys,
                    RowsAhead* ahead, void* scratch) {
  BackwardImpl(sizes, head, gradients, queries, keys, ahead, scratch);
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(BackwardFloat);
HWY_EXPORT(BackwardDouble);

template <>
void AttendGradient(const AttentionSizes& sizes, const HeadArguments<float>& head,
                    const HeadGradients<float>& gradients, TileRange queries, TileRange keys,
                    RowsAhead* ahead, void* scratch) {
  HWY_DYNAMIC_DISPATCH(BackwardFloat)(sizes, head, gradients, queries, keys, ahead, scratch);
}

template <>
void AttendGradient(const AttentionSizes& sizes, const HeadArguments<double>& head,
                    const HeadGradients<double>& gradients, TileRange queries, TileRange keys,
                    RowsAhead* ahead, void* scratch) {
  HWY_DYNAMIC_DISPATCH(BackwardDouble)(sizes, head, gradients, queries, keys, ahead, scratch);
}

}  // namespace skiff
#endif  // HWY_ONCE
