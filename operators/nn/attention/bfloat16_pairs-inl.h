// Matrices of bfloat16 in pairs, and their products, for a tile of attention.
//
// The processor multiplies pairs: sum + a₀ b₀ + a₁ b₁, in float32. So the dim that is summed over
// is stored in pairs, each a 32-bit word with the first number in its lower half. "Rows" have an
// item (a query or a key) a row, whose columns are paired. "Columns" have the same pairs with an
// item a column, kTile to a row. "Row pairs" have the pairs that two items make in each column.
//
// Included once per instruction set, through Highway's foreach_target; empty unless for AVX-512,
// where the functions need UsesAvx512Bf16().
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "framework/base/element_count.h"
#include "hwy/highway.h"
#include "operators/common/cpu/transpose_lanes-inl.h"
#include "operators/nn/attention/attention_tiles.h"

#if defined(SKIFF_OPERATORS_NN_ATTENTION_BFLOAT16_PAIRS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SKIFF_OPERATORS_NN_ATTENTION_BFLOAT16_PAIRS_INL_H_
#undef SKIFF_OPERATORS_NN_ATTENTION_BFLOAT16_PAIRS_INL_H_
#else
#define SKIFF_OPERATORS_NN_ATTENTION_BFLOAT16_PAIRS_INL_H_
#endif

#undef SKIFF_ATTENTION_HAS_PAIRS
#if HWY_ARCH_X86 && HWY_TARGET == HWY_AVX3
#define SKIFF_ATTENTION_HAS_PAIRS 1

// Highway 1.0 has no target with the products of bfloat16.
HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR ",avx512bf16")
namespace skiff::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Pair = uint32_t;
inline constexpr int64_t kVectorPairs = 16;
// Numbers in a vector of pairs. Rows of scratch memory are padded to that.
inline constexpr int64_t kVectorNumbers = 2 * kVectorPairs;

inline int64_t PairsOf(int64_t numbers) { return (numbers + 1) / 2; }
inline int64_t PaddedNumbers(int64_t width) { return RoundUp(width, kVectorNumbers); }

HWY_INLINE __mmask32 FirstNumbers(int64_t count) {
  return count >= kVectorNumbers ? ~__mmask32{0}
                                 : (__mmask32{1} << std::max<int64_t>(count, 0)) - 1;
}

// The numbers from column `first` of a row on, zeros from `width` on.
HWY_INLINE __m512i LoadNumbers(const BFloat16* row, int64_t first, int64_t width) {
  return _mm512_maskz_loadu_epi16(FirstNumbers(width - first), row + first);
}

// Number i of both halves, next to each other.
HWY_INLINE __m512i InterleaveHalves(__m512i halves) {
  const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i upper = _mm512_add_epi32(lanes, _mm512_set1_epi32(16));
  return _mm512_permutexvar_epi16(_mm512_or_si512(lanes, _mm512_slli_epi32(upper, 16)), halves);
}

struct TwoVectors {
  __m512i first;
  __m512i second;
};

// The pairs that two rows make in 32 columns.
HWY_INLINE TwoVectors PairRows(__m512i even, __m512i odd) {
  const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  // Number i of `even`, then number i of `odd`, which is number 32 + i of both.
  const __m512i first =
      _mm512_or_si512(lanes, _mm512_slli_epi32(_mm512_add_epi32(lanes, _mm512_set1_epi32(32)), 16));
  const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(16 << 16 | 16));
  return {_mm512_permutex2var_epi16(even, first, odd),
          _mm512_permutex2var_epi16(even, second, odd)};
}

// ---- copies

using NumberRows = HeadRows<const BFloat16>;

// Rows of PaddedNumbers(width) / 2 pairs.
inline void CopyPairs(const NumberRows& from, int64_t first, int64_t count, int64_t width,
                      Pair* to) {
  const BFloat16* row = from.data + first * from.stride;
  for (int64_t r = 0; r < count; ++r, row += from.stride) {
    for (int64_t i = 0; i < width; i += kVectorNumbers, to += kVectorPairs)
      _mm512_store_si512(to, LoadNumbers(row, i, width));
  }
}

// Columns; zeros for items from `count` up to a multiple of 32.
inline void CopyPairColumns(const NumberRows& from, int64_t first, int64_t count, int64_t width,
                            Pair* to) {
  const FloatTag d;
  const int64_t pairs = PairsOf(width);
  for (int64_t r = 0; r < RoundUp(count, kVectorNumbers); r += kVectorPairs) {
    for (int64_t i = 0; i < width; i += kVectorNumbers) {
      FloatVector square[kVectorPairs];
#pragma GCC unroll 16
      for (int64_t k = 0; k < kVectorPairs; ++k) {
        square[k] = hn::Zero(d);
        if (r + k < count) {
          const BFloat16* row = from.data + (first + r + k) * from.stride;
          square[k].raw = _mm512_castsi512_ps(LoadNumbers(row, i, width));
        }
      }
      TransposeLanes(square);
      const int64_t there = std::min(kVectorPairs, pairs - i / 2);
      for (int64_t k = 0; k < there; ++k)
        hn::Store(square[k], d, reinterpret_cast<float*>(to + (i / 2 + k) * kTile + r));
    }
  }
}

// Row pairs, PaddedNumbers(width) to a row. The partner of the last item may be missing: zeros.
inline void CopyRowPairs(const NumberRows& from, int64_t first, int64_t count, int64_t width,
                         Pair* to) {
  const BFloat16* row = from.data + first * from.stride;
  for (int64_t r = 0; r < count; r += 2, row += 2 * from.stride) {
    for (int64_t i = 0; i < width; i += kVectorNumbers, to += kVectorNumbers) {
      const __m512i even = LoadNumbers(row, i, width);
      const __m512i odd =
          r + 1 < count ? LoadNumbers(row + from.stride, i, width) : _mm512_setzero_si512();
      const TwoVectors pairs = PairRows(even, odd);
      _mm512_store_si512(to, pairs.first);
      _mm512_store_si512(to + kVectorPairs, pairs.second);
    }
  }
}

// ---- products

// Rows of a product whose sums stay in registers, for two vectors of columns each.
inline constexpr int64_t kPairProductRows = 8;

// The left factor of a product: the pair (r, j) is data[r * stride + j], or data[r + j * kTile] if
// kByColumns.
template <bool kByColumns>
struct LeftPairs {
  const Pair* data;
  int64_t stride = 1;  // of rows

  LeftPairs From(int64_t row) const { return {data + row * stride, stride}; }
};

// `count` rows as a left factor: in place, if they are whole pairs and make whole blocks, else as a
// copy.
inline LeftPairs<false> LeftRowsOfPairs(const NumberRows& from, int64_t first, int64_t count,
                                        int64_t width, Pair* copy) {
  const BFloat16* rows = from.data + first * from.stride;
  if (width % 2 == 0 && from.stride % 2 == 0 && count % kPairProductRows == 0)
    return {reinterpret_cast<const Pair*>(rows), from.stride / 2};
  CopyPairs(from, first, count, width, copy);
  return {copy, PaddedNumbers(width) / 2};
}

// kPairProductRows rows and 32 columns.
template <bool kByColumns>
void MultiplyPairBlock(const LeftPairs<kByColumns>& a, const Pair* b, int64_t b_stride,
                       int64_t depth, const ProductSums<float>& to) {
  constexpr int64_t kRows = kPairProductRows;
  const Pair* left = a.data;
  const int64_t row_step = kByColumns ? 1 : a.stride;
  __m512 sums[kRows][2];
#pragma GCC unroll 16
  for (int64_t r = 0; r < kRows; ++r) sums[r][0] = sums[r][1] = _mm512_setzero_ps();
  for (int64_t j = 0; j < depth; ++j, left += kByColumns ? kTile : 1, b += b_stride) {
    const auto first = (__m512bh)_mm512_load_si512(b);
    const auto second = (__m512bh)_mm512_load_si512(b + kVectorPairs);
#pragma GCC unroll 16
    for (int64_t r = 0; r < kRows; ++r) {
      int32_t pair;  // which may be two numbers of a tensor
      std::memcpy(&pair, left + r * row_step, sizeof(pair));
      const auto value = (__m512bh)_mm512_set1_epi32(pair);
      sums[r][0] = _mm512_dpbf16_ps(sums[r][0], value, first);
      sums[r][1] = _mm512_dpbf16_ps(sums[r][1], value, second);
    }
  }
  const __m512 factor = _mm512_set1_ps(to.factor);
#pragma GCC unroll 16
  for (int64_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int64_t v = 0; v < 2; ++v) {
      float* c = to.data + r * to.stride + v * kVectorPairs;
      __m512 before = to.add ? _mm512_load_ps(c) : _mm512_setzero_ps();
      if (to.row_factors != nullptr)
        before = _mm512_mul_ps(before, _mm512_set1_ps(to.row_factors[r]));
      _mm512_store_ps(c, _mm512_fmadd_ps(sums[r][v], factor, before));
    }
  }
}

// The product of a left factor and a matrix with `depth` rows of pairs. Writes whole blocks: rows
// and columns beyond `rows` and `columns` get values of no meaning.
template <bool kByColumns>
void MultiplyPairs(const LeftPairs<kByColumns>& a, const Pair* b, int64_t b_stride, int64_t rows,
                   int64_t columns, int64_t depth, const ProductSums<float>& to, RowsAhead* ahead) {
  for (int64_t row = 0; row < rows; row += kPairProductRows) {
    for (int64_t column = 0; column < columns; column += kVectorNumbers) {
      ahead->Fetch();
      MultiplyPairBlock(a.From(row), b + column, b_stride, depth, to.From(row, column));
    }
  }
}

}  // namespace skiff::HWY_NAMESPACE
HWY_POP_ATTRIBUTES

#endif  // HWY_ARCH_X86 && HWY_TARGET == HWY_AVX3

#endif  // toggle
