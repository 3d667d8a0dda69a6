// The scores of a tile of attention, with bias and causal mask.
//
// Included once per instruction set, through Highway's foreach_target.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "hwy/highway.h"
#include "operators/common/cpu/simd_math-inl.h"
#include "operators/nn/attention/attention_products-inl.h"

#if defined(SKIFF_OPERATORS_NN_ATTENTION_ATTENTION_SCORES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SKIFF_OPERATORS_NN_ATTENTION_ATTENTION_SCORES_INL_H_
#undef SKIFF_OPERATORS_NN_ATTENTION_ATTENTION_SCORES_INL_H_
#else
#define SKIFF_OPERATORS_NN_ATTENTION_ATTENTION_SCORES_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Sets the scores of keys that a query doesn't see.
template <typename T>
void HideUnseen(const AttentionSizes& sizes, const TileExtent& tile, T* scores) {
  if (!sizes.causal) return;
  for (int64_t k = 0; k < tile.keys; ++k) {
    // The first query that sees the key.
    const int64_t first = tile.key + k - sizes.first_place;
    const int64_t hidden = std::clamp<int64_t>(first - tile.query, 0, kTile);
    std::fill_n(scores + k * kTile, hidden, -std::numeric_limits<T>::infinity());
  }
}

// The scores of a tile without a bias of one row for all queries, which the readers add.
template <typename T>
void ScoreTile(const AttentionSizes& sizes, const HeadArguments<T>& head, const TileExtent& tile,
               const LeftFactor<false, T>& keys, const AttentionScratch<T>& scratch,
               RowsAhead* ahead) {
  const bool has_matrix = head.bias.data != nullptr && head.bias.stride != 0;
  if (has_matrix) {
    const HeadRows<const T> bias{head.bias.data + tile.key, head.bias.stride};
    CopyColumns(bias, tile.query, tile.queries, tile.keys, T{1}, scratch.scores);
  }
  Multiply(keys, RightFactor<T>{scratch.query_columns, kTile}, tile.keys, tile.queries, sizes.width,
           ProductSums<T>{.data = scratch.scores, .stride = kTile, .add = has_matrix}, ahead);
  HideUnseen(sizes, tile, scratch.scores);
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

}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
