// The sums of 14 rows of A and 32 columns of B stay in registers. Both matrices are read as
// matrices of pairs, each a 32-bit word: A has `rows` rows of depth / 2 pairs, B has depth / 2 rows
// of `columns` pairs. An odd depth is filled up with zeros.
//
// B is packed in panels of 32 columns, pair after pair. A is read in place, as the pairs of a row
// are neighbours already. A transposed A is packed in groups of at most 14 rows, pair after pair.
//
// Highway has no target with these instructions, so the functions are compiled for them one by one.
#include "operators/common/cpu/bf16_product.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "hwy/base.h"
#include "operators/common/cpu/x86_intrinsics.h"

namespace skiff {
namespace {

// Two numbers, the one of the lesser p in the lower half.
using Pair = uint32_t;

constexpr int64_t kMaxRows = 14;
// Pairs whose products are added up from zero before they are added to the others, which keeps
// rounding errors small.
constexpr int64_t kSumPairs = 256;
// Rows of A that stay in the second-level cache while the panels pass.
constexpr int64_t kBlockBytes = 512 << 10;
// The pairs of all rows or columns that are packed before the next ones: they are on few pages.
constexpr int64_t kPackPairs = 16;
// The multiply-adds that are worth a thread, and the numbers whose packing is.
constexpr int64_t kGrainWork = 1 << 17;
constexpr int64_t kGrainNumbers = 1 << 15;

int64_t PairsOf(int64_t depth) { return (depth + 1) / 2; }
int64_t PanelsOf(int64_t columns) {
  return (columns + Bf16Product::kPanelColumns - 1) / Bf16Product::kPanelColumns;
}

// Rows in groups of nearly the same size.
class Groups {
 public:
  explicit Groups(int64_t rows) : rows_(rows), count_((rows + kMaxRows - 1) / kMaxRows) {}
  int64_t count() const { return count_; }
  int64_t Begin(int64_t group) const { return rows_ * group / count_; }
  int64_t RowsOf(int64_t group) const { return Begin(group + 1) - Begin(group); }

 private:
  int64_t rows_;
  int64_t count_;
};

#if defined(__x86_64__)

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")

Pair LoadPair(const BFloat16* from) {
  Pair pair;
  std::memcpy(&pair, from, sizeof(pair));
  return pair;
}

__mmask32 FirstOf(int64_t count) { return count >= 32 ? ~0U : (1U << count) - 1; }

// ---- Packing

// The numbers of two rows, of which the second may be missing: 32 columns or fewer.
void PackPairsOfRows(const BFloat16* upper, const BFloat16* lower, __mmask32 columns, Pair* to) {
  const __m512i x = _mm512_maskz_loadu_epi16(columns, upper);
  const __m512i y =
      lower == nullptr ? _mm512_setzero_si512() : _mm512_maskz_loadu_epi16(columns, lower);
  // 0, 32, 1, 33, …: of two registers of 32 numbers each.
  const __m512i first = _mm512_set_epi32(0x2f000f, 0x2e000e, 0x2d000d, 0x2c000c, 0x2b000b, 0x2a000a,
                                         0x290009, 0x280008, 0x270007, 0x260006, 0x250005, 0x240004,
                                         0x230003, 0x220002, 0x210001, 0x200000);
  const __m512i second = _mm512_add_epi16(first, _mm512_set1_epi16(16));
  _mm512_storeu_si512(to, _mm512_permutex2var_epi16(x, first, y));
  _mm512_storeu_si512(to + 16, _mm512_permutex2var_epi16(x, second, y));
}

// Packs pairs [p, p + count) of a panel of B, whose rows are `stride` apart.
void PackRows(const BFloat16* b, int64_t stride, int64_t depth, int64_t columns, int64_t p,
              int64_t count, Pair* to) {
  const __mmask32 mask = FirstOf(columns);
  for (int64_t q = p; q < p + count; ++q, to += Bf16Product::kPanelColumns) {
    const BFloat16* upper = b + 2 * q * stride;
    PackPairsOfRows(upper, 2 * q + 1 < depth ? upper + stride : nullptr, mask, to);
  }
}

// Transposes 16 x 16 pairs.
void Transpose(__m512i* v) {
  __m512i t[16];
  __m512i u[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    for (int j = 0; j < 2; ++j) {
      u[i + 2 * j] = _mm512_unpacklo_epi64(t[i + j], t[i + j + 2]);
      u[i + 2 * j + 1] = _mm512_unpackhi_epi64(t[i + j], t[i + j + 2]);
    }
  }
  for (int j = 0; j < 4; ++j) {
    // Lanes of 128 bits: the even and the odd ones of two registers.
    const __m512i a = _mm512_shuffle_i32x4(u[j], u[4 + j], 0x88);
    const __m512i b = _mm512_shuffle_i32x4(u[j], u[4 + j], 0xdd);
    const __m512i c = _mm512_shuffle_i32x4(u[8 + j], u[12 + j], 0x88);
    const __m512i d = _mm512_shuffle_i32x4(u[8 + j], u[12 + j], 0xdd);
    v[j] = _mm512_shuffle_i32x4(a, c, 0x88);
    v[4 + j] = _mm512_shuffle_i32x4(b, d, 0x88);
    v[8 + j] = _mm512_shuffle_i32x4(a, c, 0xdd);
    v[12 + j] = _mm512_shuffle_i32x4(b, d, 0xdd);
  }
}

// Packs pairs [p, p + count), at most 16, of a panel of B, whose columns are `stride` apart.
void PackColumns(const BFloat16* b, int64_t stride, int64_t depth, int64_t columns, int64_t p,
                 int64_t count, Pair* to) {
  const __mmask32 mask = FirstOf(depth - 2 * p);
  for (int64_t half = 0; half < 2; ++half) {
    __m512i square[16];
    for (int64_t j = 0; j < 16; ++j) {
      const int64_t column = 16 * half + j;
      square[j] = column < columns ? _mm512_maskz_loadu_epi16(mask, b + column * stride + 2 * p)
                                   : _mm512_setzero_si512();
    }
    Transpose(square);
    for (int64_t i = 0; i < count; ++i) {
      _mm512_storeu_si512(to + i * Bf16Product::kPanelColumns + 16 * half, square[i]);
    }
  }
}

// Packs pairs [p, p + count) of a group of rows of a transposed A.
void PackGroup(const Bf16Matrix& a, int64_t first_row, int64_t rows, int64_t depth, int64_t p,
               int64_t count, Pair* to) {
  const auto mask = static_cast<__mmask16>(FirstOf(rows));
  for (int64_t q = p; q < p + count; ++q, to += rows) {
    const BFloat16* upper = a.first + 2 * q * a.stride + first_row;
    __m512i pairs = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, upper));
    if (2 * q + 1 < depth) {
      const __m256i lower = _mm256_maskz_loadu_epi16(mask, upper + a.stride);
      pairs = _mm512_or_si512(pairs, _mm512_slli_epi32(_mm512_cvtepu16_epi32(lower), 16));
    }
    _mm512_mask_storeu_epi32(to, mask, pairs);
  }
}

// ---- Products

// A group of rows: packed, or the first row in place.
struct LeftRows {
  const Pair* packed;
  const BFloat16* in_place;
  int64_t stride;
};

__m512 LoadWide(__mmask16 mask, const BFloat16* from) {
  const __m256i halves = _mm256_maskz_loadu_epi16(mask, from);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}
__m512 LoadWide(__mmask16 mask, const float* from) { return _mm512_maskz_loadu_ps(mask, from); }

// Store a row of a panel. What isn't masked is many times faster for bfloat16.
void StoreAll(__m512 left, __m512 right, BFloat16* to) {
  _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh(right, left));
}
void StoreAll(__m512 left, __m512 right, float* to) {
  _mm512_storeu_ps(to, left);
  _mm512_storeu_ps(to + 16, right);
}
void StoreSome(__m512 left, __m512 right, __mmask32 mask, BFloat16* to) {
  _mm512_mask_storeu_epi16(to, mask, (__m512i)_mm512_cvtne2ps_pbh(right, left));
}
void StoreSome(__m512 left, __m512 right, __mmask32 mask, float* to) {
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>(mask), left);
  _mm512_mask_storeu_ps(to + 16, static_cast<__mmask16>(mask >> 16), right);
}

// Multiplies a group of kRows rows with a panel, and writes the result of its first `columns`
// columns. The number of rows is a template argument so that the sums stay in registers.
template <int kRows, bool kIsPacked, typename C>
void MultiplyGroup(const LeftRows& a, const Pair* b, int64_t depth, int64_t columns,
                   const Bf16Result<C>& result) {
  constexpr int64_t kStep = Bf16Product::kPanelColumns;
  __m512 sums[kRows][2];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    // A large C isn't in the cache. Its rows are pages apart, so the hardware doesn't expect them.
    __builtin_prefetch(result.c + r * result.stride, /*write=*/1);
    sums[r][0] = sums[r][1] = _mm512_setzero_ps();
  }
  alignas(64) float totals[kRows * kStep];
  const int64_t pairs = PairsOf(depth);
  // The last number of an odd depth in place isn't half of a pair.
  const int64_t whole_pairs = kIsPacked ? pairs : depth / 2;
  const auto add_products = [&](int64_t p, auto pair_of) __attribute__((always_inline)) {
    const auto left = (__m512bh)_mm512_loadu_si512(b + p * kStep);
    const auto right = (__m512bh)_mm512_loadu_si512(b + p * kStep + 16);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const auto value = (__m512bh)_mm512_set1_epi32(static_cast<int>(pair_of(r)));
      sums[r][0] = _mm512_dpbf16_ps(sums[r][0], value, left);
      sums[r][1] = _mm512_dpbf16_ps(sums[r][1], value, right);
    }
  };
  const auto add_totals = [&]() __attribute__((always_inline)) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      for (int j = 0; j < 2; ++j) {
        sums[r][j] = _mm512_add_ps(sums[r][j], _mm512_load_ps(totals + r * kStep + 16 * j));
      }
    }
  };
  for (int64_t begin = 0; begin < pairs; begin += kSumPairs) {
    if (begin > 0) {
      if (begin > kSumPairs) add_totals();
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        for (int j = 0; j < 2; ++j) {
          _mm512_store_ps(totals + r * kStep + 16 * j, sums[r][j]);
          sums[r][j] = _mm512_setzero_ps();
        }
      }
    }
    const int64_t end = std::min(pairs, begin + kSumPairs);
    const int64_t end_of_whole = std::min(end, whole_pairs);
    for (int64_t p = begin; p < end_of_whole; ++p) {
      add_products(p, [&](int r) {
        return kIsPacked ? a.packed[p * kRows + r] : LoadPair(a.in_place + r * a.stride + 2 * p);
      });
    }
    if (end_of_whole < end) {
      add_products(end_of_whole,
                   [&](int r) { return Pair{a.in_place[r * a.stride + 2 * end_of_whole].bits}; });
    }
  }
  if (pairs > kSumPairs) add_totals();
  const __mmask32 mask = FirstOf(columns);
  const __m512 alpha = _mm512_set1_ps(result.alpha);
  const __m512 beta = _mm512_set1_ps(result.beta);
  __m512 bias[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
#pragma GCC unroll 2
  for (int j = 0; j < 2; ++j) {
    const auto half = static_cast<__mmask16>(mask >> 16 * j);
    if (result.bias != nullptr) bias[j] = LoadWide(half, result.bias + 16 * j);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      sums[r][j] = _mm512_mul_ps(alpha, sums[r][j]);
      if (result.beta != 0) {
        const C* old = result.c + r * result.stride + 16 * j;
        sums[r][j] = _mm512_fmadd_ps(beta, LoadWide(half, old), sums[r][j]);
      }
      sums[r][j] = _mm512_add_ps(sums[r][j], bias[j]);
    }
  }
  const bool stores_all = columns >= kStep;
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    C* to = result.c + r * result.stride;
    if (stores_all) {
      StoreAll(sums[r][0], sums[r][1], to);
    } else {
      StoreSome(sums[r][0], sums[r][1], mask, to);
    }
  }
}

template <typename C>
using GroupKernel = void (*)(const LeftRows&, const Pair*, int64_t, int64_t, const Bf16Result<C>&);

template <bool kIsPacked, typename C, size_t... kIndex>
constexpr std::array<GroupKernel<C>, sizeof...(kIndex)> GroupKernels(
    std::index_sequence<kIndex...>) {
  return {MultiplyGroup<static_cast<int>(kIndex) + 1, kIsPacked, C>...};
}

HWY_POP_ATTRIBUTES

template <typename C>
void MultiplyAll(const Bf16Matrix& a, int64_t rows, const Pair* packed, Pair* scratch,
                 int64_t depth, int64_t columns, const Bf16Result<C>& result) {
  static constexpr auto kInPlace =
      GroupKernels<false, C>(std::make_index_sequence<size_t{kMaxRows}>());
  static constexpr auto kPacked =
      GroupKernels<true, C>(std::make_index_sequence<size_t{kMaxRows}>());
  constexpr int64_t kWidth = Bf16Product::kPanelColumns;
  if (rows == 0 || columns == 0) return;
  const Groups groups(rows);
  const int64_t pairs = PairsOf(depth);
  if (a.is_transposed) {
    const int64_t parts = (pairs + kPackPairs - 1) / kPackPairs;
    const int64_t grain = kGrainNumbers / (2 * kPackPairs * kMaxRows);
    ParallelFor(parts * groups.count(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t group = i % groups.count();
        const int64_t p = i / groups.count() * kPackPairs;
        const int64_t first = groups.Begin(group);
        const int64_t count = groups.RowsOf(group);
        PackGroup(a, first, count, depth, p, std::min(kPackPairs, pairs - p),
                  scratch + first * pairs + p * count);
      }
    });
  }
  const auto multiply = [&](int64_t group, int64_t panel) {
    const int64_t first = groups.Begin(group);
    const LeftRows left = {scratch + first * pairs, a.first + first * a.stride, a.stride};
    const int64_t column = panel * kWidth;
    Bf16Result<C> part = result;
    part.c += first * result.stride + column;
    if (part.bias != nullptr) part.bias += column;
    const auto& kernels = a.is_transposed ? kPacked : kInPlace;
    kernels[static_cast<size_t>(groups.RowsOf(group) - 1)](left, packed + column * pairs, depth,
                                                           columns - column, part);
  };
  // Threads take ranges of panels if there are few rows, else ranges of blocks of groups, and of
  // the panels of the first and the last of these blocks.
  const int64_t bytes = std::max<int64_t>(1, pairs) * kMaxRows * int64_t{sizeof(Pair)};
  const int64_t step = std::clamp<int64_t>(kBlockBytes / bytes, 1, groups.count());
  const int64_t blocks = (groups.count() + step - 1) / step;
  const int64_t panels = PanelsOf(columns);
  const int64_t work = rows * depth * kWidth / blocks;
  const int64_t grain = std::max<int64_t>(1, kGrainWork / std::max<int64_t>(1, work));
  ParallelFor(blocks * panels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t block = i / panels;
      const int64_t last = groups.count() * (block + 1) / blocks;
      for (int64_t group = groups.count() * block / blocks; group < last; ++group) {
        multiply(group, i % panels);
      }
    }
  });
}

void PackAll(const BFloat16* b, int64_t row_stride, int64_t column_stride, int64_t depth,
             int64_t columns, Pair* to) {
  constexpr int64_t kWidth = Bf16Product::kPanelColumns;
  const int64_t pairs = PairsOf(depth);
  const int64_t panels = PanelsOf(columns);
  const int64_t parts = (pairs + kPackPairs - 1) / kPackPairs;
  ParallelFor(
      parts * panels, kGrainNumbers / (2 * kPackPairs * kWidth), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t column = i % panels * kWidth;
          const int64_t p = i / panels * kPackPairs;
          const bool has_rows = column_stride == 1;
          (has_rows ? PackRows : PackColumns)(b + column * column_stride,
                                              has_rows ? row_stride : column_stride, depth,
                                              columns - column, p, std::min(kPackPairs, pairs - p),
                                              to + column * pairs + p * kWidth);
        }
      });
}

#else

template <typename C>
void MultiplyAll(const Bf16Matrix&, int64_t, const Pair*, Pair*, int64_t, int64_t,
                 const Bf16Result<C>&) {
  Throw(ErrorCode::kUnimplemented, "products of bfloat16: expected a processor with AVX512-BF16");
}
void PackAll(const BFloat16*, int64_t, int64_t, int64_t, int64_t, Pair*) {
  Throw(ErrorCode::kUnimplemented, "products of bfloat16: expected a processor with AVX512-BF16");
}

#endif

}  // namespace

Bf16Product::Bf16Product(int64_t depth, int64_t columns) : depth_(depth), columns_(columns) {}

int64_t Bf16Product::bytes() const {
  return MultiplyCounts(MultiplyCounts(PairsOf(depth_), PanelsOf(columns_)),
                        kPanelColumns * int64_t{sizeof(Pair)});
}

void Bf16Product::Pack(const BFloat16* b, int64_t row_stride, int64_t column_stride,
                       void* packed) const {
  PackAll(b, row_stride, column_stride, depth_, columns_, static_cast<Pair*>(packed));
}

int64_t Bf16Product::ScratchBytes(int64_t rows) const {
  return MultiplyCounts(MultiplyCounts(PairsOf(depth_), rows), int64_t{sizeof(Pair)});
}

void Bf16Product::Multiply(const Bf16Matrix& a, int64_t rows, const void* packed, void* scratch,
                           const Bf16Result<BFloat16>& result) const {
  MultiplyAll(a, rows, static_cast<const Pair*>(packed), static_cast<Pair*>(scratch), depth_,
              columns_, result);
}

void Bf16Product::Multiply(const Bf16Matrix& a, int64_t rows, const void* packed, void* scratch,
                           const Bf16Result<float>& result) const {
  MultiplyAll(a, rows, static_cast<const Pair*>(packed), static_cast<Pair*>(scratch), depth_,
              columns_, result);
}

}  // namespace skiff
