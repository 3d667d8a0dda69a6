// Attention of bfloat16, forward and backward, by the processor's products of pairs.
#include <algorithm>
#include <limits>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "operators/common/cpu/x86_intrinsics.h"
#include "operators/nn/attention/attention_tiles.h"
#include "operators/nn/attention/head_attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/nn/attention/attention_bfloat16.cc"
#include "hwy/foreach_target.h"

// After foreach_target.h, since these headers are compiled once per instruction set as well.
#include "hwy/highway.h"
#include "operators/nn/attention/attention_dropout-inl.h"
#include "operators/nn/attention/attention_scores-inl.h"
#include "operators/nn/attention/bfloat16_pairs-inl.h"

#ifdef SKIFF_ATTENTION_HAS_PAIRS

HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR ",avx512bf16")
namespace skiff::HWY_NAMESPACE {
namespace {

// The scratch memory of a tile of queries and a tile of keys.
struct PairScratch {
  // Without memory, only counts.
  PairScratch(const AttentionSizes& sizes, bool for_gradient, void* memory = nullptr)
      : next_(static_cast<char*>(memory)) {
    const int64_t padded = PaddedNumbers(sizes.width);
    const int64_t matrix = padded / 2 * kTile;  // pairs
    for (Pair** buffer : {&query_columns, &query_row_pairs, &out_columns, &out_row_pairs, &keys,
                          &key_row_pairs, &values, &value_row_pairs})
      Take(matrix, buffer);
    for (Pair** buffer : {&weights, &gradient_rows, &gradient_row_pairs})
      Take(kTile * kTile / 2, buffer);
    for (float** buffer : {&scores, &gradients}) Take(kTile * kTile, buffer);
    Take(padded * kTile, &query_sums);
    const int64_t summed_keys = for_gradient ? RoundUp(sizes.keys, kTile) : 0;
    for (float** buffer : {&key_sums, &value_sums})
      Take(MultiplyCounts(padded, summed_keys), buffer);
    for (float** buffer : {&key_bias, &row_max, &row_sum, &row_factor}) Take(kTile, buffer);
    Take(kTile * kTile, &words);
  }

  int64_t bytes() const { return bytes_; }

  Pair* query_columns = nullptr;
  Pair* query_row_pairs = nullptr;
  Pair* out_columns = nullptr;  // of Out@GRAD, as out_row_pairs
  Pair* out_row_pairs = nullptr;
  Pair* keys = nullptr;  // rows, as values
  Pair* key_row_pairs = nullptr;
  Pair* values = nullptr;
  Pair* value_row_pairs = nullptr;
  // A tile of the weights that Out is summed with: row pairs of keys in forward, in backward rows.
  Pair* weights = nullptr;
  Pair* gradient_rows = nullptr;  // of the scores, as the next one
  Pair* gradient_row_pairs = nullptr;
  // As AttentionScratch's. Sums have PaddedNumbers(width) columns.
  float* scores = nullptr;
  float* gradients = nullptr;
  float* query_sums = nullptr;
  float* key_sums = nullptr;  // of all keys, as value_sums; in backward alone
  float* value_sums = nullptr;
  float* key_bias = nullptr;
  float* row_max = nullptr;
  float* row_sum = nullptr;
  float* row_factor = nullptr;
  uint32_t* words = nullptr;

 private:
  template <typename T>
  void Take(int64_t count, T** buffer) {
    if (next_ != nullptr) *buffer = reinterpret_cast<T*>(next_ + bytes_);
    bytes_ = AddCounts(bytes_, RoundUp(MultiplyCounts(count, sizeof(T)), 64));
  }

  char* next_;
  int64_t bytes_ = 0;
};

using Floats = hn::Full512<float>;
using Vector = hn::Vec<Floats>;

HWY_INLINE __m512i Rounded(Vector first, Vector second) {
  return (__m512i)_mm512_cvtne2ps_pbh(second.raw, first.raw);
}

HWY_INLINE Vector Widened(__m256i numbers) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(numbers), 16))};
}

// to = the number of each column of a row, zeros up to a multiple of 16.
void WidenRow(const BFloat16* row, int64_t count, float* to) {
  for (int64_t i = 0; i < count; i += kVectorPairs) {
    const auto mask = static_cast<__mmask16>(FirstNumbers(count - i));
    hn::Store(Widened(_mm256_maskz_loadu_epi16(mask, row + i)), Floats(), to + i);
  }
}

// Rounds factors[r] * sums, or `factor` times each, to `count` rows.
void StoreScaledRows(const float* sums, const float* factors, float factor, int64_t count,
                     int64_t width, int64_t first, const HeadRows<BFloat16>& to) {
  BFloat16* row = to.data + first * to.stride;
  for (int64_t r = 0; r < count; ++r, row += to.stride) {
    const Vector scale = hn::Set(Floats(), factors != nullptr ? factors[r] : factor);
    for (int64_t i = 0; i < width; i += kVectorNumbers, sums += kVectorNumbers) {
      const Vector low = hn::Mul(hn::Load(Floats(), sums), scale);
      const Vector high = hn::Mul(hn::Load(Floats(), sums + kVectorPairs), scale);
      const __m512i numbers = Rounded(low, high);
      // A store with a mask is many times slower.
      if (width - i >= kVectorNumbers) {
        _mm512_storeu_si512(row + i, numbers);
      } else {
        _mm512_mask_storeu_epi16(row + i, FirstNumbers(width - i), numbers);
      }
    }
  }
}

// The scores of a tile but for a bias of one row for all queries, which goes to key_bias: its
// readers add it. Returns it, or nullptr if there is none.
const float* ScorePairs(const AttentionSizes& sizes, const HeadArguments<BFloat16>& head,
                        const TileExtent& tile, const LeftPairs<false>& keys,
                        const PairScratch& scratch, RowsAhead* ahead) {
  const bool has_bias = head.bias.data != nullptr;
  const bool has_matrix = has_bias && head.bias.stride != 0;
  if (has_matrix) {
    float* rows = scratch.gradients;  // which come later
    for (int64_t q = 0; q < tile.queries; ++q)
      WidenRow(head.bias.data + (tile.query + q) * head.bias.stride + tile.key, tile.keys,
               rows + q * kTile);
    CopyColumns<float>({rows, kTile}, 0, tile.queries, tile.keys, 1.0f, scratch.scores);
  }
  MultiplyPairs(keys, scratch.query_columns, kTile, tile.keys, tile.queries, PairsOf(sizes.width),
                {.data = scratch.scores, .stride = kTile, .factor = head.scale, .add = has_matrix},
                ahead);
  HideUnseen(sizes, tile, scratch.scores);
  if (!has_bias || has_matrix) return nullptr;
  WidenRow(head.bias.data + tile.key, tile.keys, scratch.key_bias);
  return scratch.key_bias;
}

// The queries whose weights are computed together, as vectors: that hides the latency of their
// maxima and sums.
constexpr int64_t kQueryVectors = 2;
constexpr int64_t kQueryGroup = kQueryVectors * kVectorPairs;

// ---- forward

// Makes weights of a group of queries' scores, and updates the statistics of these queries.
void SoftmaxPairs(const WeightDropout& dropout, const float* key_bias, int64_t keys, int64_t q,
                  const PairScratch& scratch) {
  const Floats d;
  const Vector lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  float* scores = scratch.scores + q;
  Vector before[kQueryVectors], top[kQueryVectors];
  for (int64_t v = 0; v < kQueryVectors; ++v)
    top[v] = before[v] = hn::Load(d, scratch.row_max + q + v * kVectorPairs);
  for (int64_t k = 0; k < keys; ++k) {
    for (int64_t v = 0; v < kQueryVectors; ++v) {
      float* at = scores + k * kTile + v * kVectorPairs;
      Vector score = hn::Load(d, at);
      if (key_bias != nullptr) {
        score = hn::Add(score, hn::Set(d, key_bias[k]));
        hn::Store(score, d, at);
      }
      top[v] = hn::Max(top[v], score);
    }
  }
  Vector shift[kQueryVectors], sum[kQueryVectors];
  for (int64_t v = 0; v < kQueryVectors; ++v) {
    // Where all scores so far are -inf, all exponentials are 0.
    shift[v] = hn::IfThenElse(hn::Eq(top[v], lowest), hn::Zero(d), top[v]);
    const Vector factor = WeightOf(d, hn::Sub(before[v], shift[v]));
    const int64_t at = q + v * kVectorPairs;
    sum[v] = hn::Mul(hn::Load(d, scratch.row_sum + at), factor);
    hn::Store(top[v], d, scratch.row_max + at);
    hn::Store(factor, d, scratch.row_factor + at);
  }
  const auto weight_of = [&](int64_t k, int64_t v) {
    const int64_t at = k * kTile + v * kVectorPairs;
    const Vector weight = WeightOf(d, hn::Sub(hn::Load(d, scores + at), shift[v]));
    sum[v] = hn::Add(sum[v], weight);
    if (dropout.threshold == 0) return weight;
    return hn::IfThenZeroElse(DroppedLanes(d, scratch.words + q + at, dropout.threshold), weight);
  };
  for (int64_t k = 0; k < keys; k += 2) {
    for (int64_t v = 0; v < kQueryVectors; ++v) {
      const Vector even = weight_of(k, v);
      const Vector odd = k + 1 < keys ? weight_of(k + 1, v) : hn::Zero(d);
      const __m512i pairs = InterleaveHalves(Rounded(even, odd));
      _mm512_store_si512(scratch.weights + k / 2 * kTile + q + v * kVectorPairs, pairs);
    }
  }
  for (int64_t v = 0; v < kQueryVectors; ++v)
    hn::Store(sum[v], d, scratch.row_sum + q + v * kVectorPairs);
}

void ForwardPairs(const AttentionSizes& sizes, const HeadArguments<BFloat16>& head,
                  const HeadOutputs<BFloat16>& outputs, int64_t query_tile, RowsAhead* ahead,
                  void* memory) {
  const PairScratch scratch(sizes, /*for_gradient=*/false, memory);
  const int64_t padded = PaddedNumbers(sizes.width);
  TileExtent tile = ExtentOf(sizes, head.known_keys, query_tile, 0);
  CopyPairColumns(head.query, tile.query, tile.queries, sizes.width, scratch.query_columns);
  std::fill_n(scratch.row_max, kTile, -std::numeric_limits<float>::infinity());
  std::fill_n(scratch.row_sum, kTile, 0.0f);
  for (int64_t k = 0; k < sizes.key_tiles(); ++k) {
    tile = ExtentOf(sizes, head.known_keys, query_tile, k);
    if (tile.keys == 0) break;
    const auto keys = LeftRowsOfPairs(head.key, tile.key, tile.keys, sizes.width, scratch.keys);
    CopyRowPairs(head.value, tile.key, tile.keys, sizes.width, scratch.value_row_pairs);
    const float* key_bias = ScorePairs(sizes, head, tile, keys, scratch, ahead);
    DrawWords(head.dropout, sizes, tile, scratch.words);
    for (int64_t q = 0; q < tile.queries; q += kQueryGroup)
      SoftmaxPairs(head.dropout, key_bias, tile.keys, q, scratch);
    MultiplyPairs(LeftPairs<true>{scratch.weights}, scratch.value_row_pairs, padded, tile.queries,
                  padded, PairsOf(tile.keys),
                  {.data = scratch.query_sums,
                   .stride = padded,
                   .add = k > 0,
                   .row_factors = scratch.row_factor},
                  ahead);
  }
  const auto scale = static_cast<float>(head.dropout.scale);
  if (head.known_keys == 0) std::fill_n(scratch.query_sums, tile.queries * padded, 0.0f);
  for (int64_t q = 0; q < tile.queries; ++q) {
    // Without keys the sums over them are empty: 0, not 0 / 0.
    scratch.row_factor[q] = head.known_keys == 0 ? 0 : scale / scratch.row_sum[q];
  }
  StoreScaledRows(scratch.query_sums, scratch.row_factor, 1, tile.queries, sizes.width, tile.query,
                  outputs.out);
  if (outputs.row_max != nullptr)
    std::copy_n(scratch.row_max, tile.queries, outputs.row_max + tile.query);
  if (outputs.row_sum != nullptr)
    std::copy_n(scratch.row_sum, tile.queries, outputs.row_sum + tile.query);
}

// ---- backward

// Loads what the gradients of a tile of queries need besides keys and values.
void LoadQueries(const AttentionSizes& sizes, const HeadArguments<BFloat16>& head,
                 const HeadGradients<BFloat16>& gradients, const TileExtent& tile,
                 const PairScratch& scratch) {
  CopyPairColumns(head.query, tile.query, tile.queries, sizes.width, scratch.query_columns);
  CopyRowPairs(head.query, tile.query, tile.queries, sizes.width, scratch.query_row_pairs);
  CopyPairColumns(gradients.out_gradient, tile.query, tile.queries, sizes.width,
                  scratch.out_columns);
  CopyRowPairs(gradients.out_gradient, tile.query, tile.queries, sizes.width,
               scratch.out_row_pairs);
  std::fill_n(scratch.row_max, kTile, 0.0f);
  std::fill_n(scratch.row_sum, kTile, 1.0f);
  std::fill_n(scratch.row_factor, kTile, 0.0f);
  std::copy_n(gradients.row_max + tile.query, tile.queries, scratch.row_max);
  for (int64_t q = 0; q < tile.queries; ++q)
    scratch.row_sum[q] = 1 / gradients.row_sum[tile.query + q];
  for (int64_t q = 0; q < tile.queries; ++q) {
    const int64_t query = tile.query + q;
    const BFloat16* out = gradients.out.data + query * gradients.out.stride;
    const BFloat16* gradient = gradients.out_gradient.data + query * gradients.out_gradient.stride;
    __m512 sum = _mm512_setzero_ps();
    for (int64_t i = 0; i < sizes.width; i += kVectorNumbers)
      sum = _mm512_dpbf16_ps(sum, (__m512bh)LoadNumbers(out, i, sizes.width),
                             (__m512bh)LoadNumbers(gradient, i, sizes.width));
    scratch.row_factor[q] = _mm512_reduce_add_ps(sum);
  }
}

// What a key and a group of queries have: the weights that Out was summed with, and the gradients
// of the scores, both rounded.
struct WeightRow {
  __m512i weights;
  __m512i gradients;
};

// `mask`: which of the queries are there.
HWY_INLINE WeightRow SoftmaxGradRow(const WeightDropout& dropout, const float* key_bias, int64_t k,
                                    int64_t q, __mmask32 mask, const PairScratch& scratch) {
  const Floats d;
  const Vector kept_scale = hn::Set(d, static_cast<float>(dropout.scale));
  Vector kept[kQueryVectors], products[kQueryVectors];
  for (int64_t v = 0; v < kQueryVectors; ++v) {
    const int64_t query = q + v * kVectorPairs;
    const int64_t at = k * kTile + query;
    Vector score = hn::Load(d, scratch.scores + at);
    if (key_bias != nullptr) score = hn::Add(score, hn::Set(d, key_bias[k]));
    const Vector exp = WeightOf(d, hn::Sub(score, hn::Load(d, scratch.row_max + query)));
    const Vector weight = hn::Mul(exp, hn::Load(d, scratch.row_sum + query));
    kept[v] = weight;
    Vector gradient = hn::Load(d, scratch.gradients + at);
    if (dropout.threshold != 0) {
      const auto dropped = DroppedLanes(d, scratch.words + at, dropout.threshold);
      kept[v] = hn::IfThenZeroElse(dropped, hn::Mul(weight, kept_scale));
      gradient = hn::IfThenZeroElse(dropped, hn::Mul(gradient, kept_scale));
    }
    products[v] = hn::Mul(weight, hn::Sub(gradient, hn::Load(d, scratch.row_factor + query)));
  }
  return {_mm512_maskz_mov_epi16(mask, Rounded(kept[0], kept[1])),
          _mm512_maskz_mov_epi16(mask, Rounded(products[0], products[1]))};
}

// Makes weights and their gradients of a tile, zeros for queries and keys that aren't there, up to
// the ends of the blocks of products.
void SoftmaxGradPairs(const WeightDropout& dropout, const float* key_bias, const TileExtent& tile,
                      const PairScratch& scratch) {
  for (int64_t q = 0; q < tile.queries; q += kQueryGroup) {
    const __mmask32 mask = FirstNumbers(tile.queries - q);
    for (int64_t k = 0; k < RoundUp(tile.keys, kPairProductRows); k += 2) {
      WeightRow rows[2];
      for (int64_t i = 0; i < 2; ++i) {
        rows[i] = k + i < tile.keys ? SoftmaxGradRow(dropout, key_bias, k + i, q, mask, scratch)
                                    : WeightRow{_mm512_setzero_si512(), _mm512_setzero_si512()};
        const int64_t at = ((k + i) * kTile + q) / 2;
        _mm512_store_si512(scratch.weights + at, rows[i].weights);
        _mm512_store_si512(scratch.gradient_rows + at, rows[i].gradients);
      }
      const TwoVectors pairs = PairRows(rows[0].gradients, rows[1].gradients);
      Pair* to = scratch.gradient_row_pairs + k / 2 * kTile + q;
      _mm512_store_si512(to, pairs.first);
      _mm512_store_si512(to + kVectorPairs, pairs.second);
    }
  }
}

// Adds what a tile, for which everything is loaded, contributes to the sums that are wanted.
void AddPairGradients(const AttentionSizes& sizes, const HeadGradients<BFloat16>& gradients,
                      const TileExtent& tile, int64_t first_key, const PairScratch& scratch,
                      RowsAhead* ahead) {
  const int64_t padded = PaddedNumbers(sizes.width);
  const auto add_of_keys = [&](const Pair* weights, const Pair* rows, float* sums) {
    MultiplyPairs(LeftPairs<false>{weights, kTile / 2}, rows, padded, tile.keys, padded,
                  PairsOf(tile.queries),
                  {.data = sums + (tile.key - first_key) * padded, .stride = padded, .add = true},
                  ahead);
  };
  if (gradients.value.data != nullptr)
    add_of_keys(scratch.weights, scratch.out_row_pairs, scratch.value_sums);
  if (gradients.key.data != nullptr)
    add_of_keys(scratch.gradient_rows, scratch.query_row_pairs, scratch.key_sums);
  if (gradients.query.data != nullptr)
    MultiplyPairs(LeftPairs<true>{scratch.gradient_row_pairs}, scratch.key_row_pairs, padded,
                  tile.queries, padded, PairsOf(tile.keys),
                  {.data = scratch.query_sums, .stride = padded, .add = true}, ahead);
}

void BackwardPairs(const AttentionSizes& sizes, const HeadArguments<BFloat16>& head,
                   const HeadGradients<BFloat16>& gradients, TileRange queries, TileRange keys,
                   RowsAhead* ahead, void* memory) {
  const PairScratch scratch(sizes, /*for_gradient=*/true, memory);
  const int64_t padded = PaddedNumbers(sizes.width);
  const int64_t first_key = keys.begin * kTile;
  const int64_t key_count = std::min(sizes.keys, keys.end * kTile) - first_key;
  if (gradients.key.data != nullptr)
    std::fill_n(scratch.key_sums, RoundUp(key_count, kTile) * padded, 0.0f);
  if (gradients.value.data != nullptr)
    std::fill_n(scratch.value_sums, RoundUp(key_count, kTile) * padded, 0.0f);
  for (int64_t query = queries.begin; query < queries.end; ++query) {
    TileExtent tile = ExtentOf(sizes, head.known_keys, query, keys.begin);
    if (gradients.query.data != nullptr) std::fill_n(scratch.query_sums, kTile * padded, 0.0f);
    if (tile.keys > 0) LoadQueries(sizes, head, gradients, tile, scratch);
    for (int64_t key = keys.begin; key < keys.end; ++key) {
      tile = ExtentOf(sizes, head.known_keys, query, key);
      if (tile.keys == 0) break;
      const auto key_factor =
          LeftRowsOfPairs(head.key, tile.key, tile.keys, sizes.width, scratch.keys);
      const auto values =
          LeftRowsOfPairs(head.value, tile.key, tile.keys, sizes.width, scratch.values);
      if (gradients.query.data != nullptr)
        CopyRowPairs(head.key, tile.key, tile.keys, sizes.width, scratch.key_row_pairs);
      const float* key_bias = ScorePairs(sizes, head, tile, key_factor, scratch, ahead);
      MultiplyPairs(values, scratch.out_columns, kTile, tile.keys, tile.queries,
                    PairsOf(sizes.width), {.data = scratch.gradients, .stride = kTile}, ahead);
      DrawWords(head.dropout, sizes, tile, scratch.words);
      SoftmaxGradPairs(head.dropout, key_bias, tile, scratch);
      AddPairGradients(sizes, gradients, tile, first_key, scratch, ahead);
    }
    if (gradients.query.data != nullptr)
      StoreScaledRows(scratch.query_sums, nullptr, head.scale, tile.queries, sizes.width,
                      tile.query, gradients.query);
  }
  if (gradients.key.data != nullptr)
    StoreScaledRows(scratch.key_sums, nullptr, head.scale, key_count, sizes.width, first_key,
                    gradients.key);
  if (gradients.value.data != nullptr)
    StoreScaledRows(scratch.value_sums, nullptr, 1, key_count, sizes.width, first_key,
                    gradients.value);
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_POP_ATTRIBUTES

#endif  // SKIFF_ATTENTION_HAS_PAIRS

#if HWY_ONCE
namespace skiff {

// Not by HWY_DYNAMIC_DISPATCH: KernelDef::needs says when these functions may be called.
#if HWY_ARCH_X86 && (HWY_TARGETS & HWY_AVX3)

bool HasBFloat16Attention() { return true; }

template <>
int64_t AttentionScratchBytes<BFloat16>(const AttentionSizes& sizes, bool for_gradient) {
  return N_AVX3::PairScratch(sizes, for_gradient).bytes();
}

template <>
void AttendTile(const AttentionSizes& sizes, const HeadArguments<BFloat16>& head,
                const HeadOutputs<BFloat16>& outputs, int64_t query_tile, RowsAhead* ahead,
                void* scratch) {
  N_AVX3::ForwardPairs(sizes, head, outputs, query_tile, ahead, scratch);
}

template <>
void AttendGradient(const AttentionSizes& sizes, const HeadArguments<BFloat16>& head,
                    const HeadGradients<BFloat16>& gradients, TileRange queries, TileRange keys,
                    RowsAhead* ahead, void* scratch) {
  N_AVX3::BackwardPairs(sizes, head, gradients, queries, keys, ahead, scratch);
}

#else

namespace {

[[noreturn]] void ThrowNotCompiled() {
  Throw(ErrorCode::kUnimplemented,
        "attention of bfloat16: expected Highway to be compiled for a target with AVX-512");
}

}  // namespace

bool HasBFloat16Attention() { return false; }

template <>
int64_t AttentionScratchBytes<BFloat16>(const AttentionSizes&, bool) {
  ThrowNotCompiled();
}

template <>
void AttendTile(const AttentionSizes&, const HeadArguments<BFloat16>&, const HeadOutputs<BFloat16>&,
                int64_t, RowsAhead*, void*) {
  ThrowNotCompiled();
}

template <>
void AttendGradient(const AttentionSizes&, const HeadArguments<BFloat16>&,
                    const HeadGradients<BFloat16>&, TileRange, TileRange, RowsAhead*, void*) {
  ThrowNotCompiled();
}

#endif

}  // namespace skiff
#endif  // HWY_ONCE
