// The sums of some rows of A and two vectors of columns stay in registers, as many rows as fit. A
// panel has the same columns for every instruction set: the longest vector.
//
// A thread copies as much of a block of A as stays in the second-level cache, in the order in which
// the loop reads it, before it multiplies that with its panels. Of few rows, which are one block, a
// thread takes whole pairs of panels, so its part of B stays in its cache from one product to the
// next.
#include "operators/common/cpu/packed_product.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/parallel.h"
#include "operators/common/cpu/packed_product_part.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/common/cpu/packed_product.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "operators/common/cpu/transpose_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
using TagOf = hn::CappedTag<T, 64 / sizeof(T)>;
template <typename T>
constexpr int64_t kLanesOf = static_cast<int64_t>(hn::MaxLanes(TagOf<T>()));

// 32 registers: 28 sums, 2 vectors of B, a number of A. 16 registers: 12 sums.
template <typename T>
constexpr int64_t kMaxRows = kLanesOf<T> * sizeof(T) == 64 ? 14 : 6;

// The numbers behind the copy of a block that may be overwritten.
constexpr int64_t kSlack = kLanes;

// Two vectors of columns of B, in one panel or in two.
template <typename T>
struct Pair {
  const T* left;
  const T* right;
};

// c[kRows, columns] = a * B, or c += that, for `depth` rows and a pair of B; `a` has kRows numbers
// for each of these rows. Then adds a bias that isn't nullptr. Asks for `next` in the second-level
// cache. The number of rows is a template argument so that the sums stay in registers.
template <typename T, int kRows>
void MultiplyRows(const T* a, Pair<T> b, Pair<T> next, int64_t depth, bool add, const T* bias,
                  int64_t columns, T* c, int64_t c_stride) {
  const TagOf<T> d;
  constexpr int64_t kLanes = kLanesOf<T>;
  constexpr int64_t kStep = PackedProduct<T>::kPanelColumns;
  hn::Vec<TagOf<T>> sums[kRows][2];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    // A large C isn't in the cache. Its rows are pages apart, so the hardware doesn't expect them.
    __builtin_prefetch(c + r * c_stride, /*write=*/1);
    __builtin_prefetch(c + r * c_stride + kLanes, /*write=*/1);
    sums[r][0] = sums[r][1] = hn::Zero(d);
  }
  for (int64_t p = 0; p < depth; ++p) {
    // Here, between the multiply-adds that the loop waits for, there is time for it.
    __builtin_prefetch(next.left + p * kStep, /*write=*/0, /*locality=*/2);
    // Else both vectors are in one line.
    if constexpr (kLanes == kStep)
      __builtin_prefetch(next.right + p * kStep, /*write=*/0, /*locality=*/2);
    const auto left = hn::LoadU(d, b.left + p * kStep);
    const auto right = hn::LoadU(d, b.right + p * kStep);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const auto value = hn::Set(d, a[p * kRows + r]);
      sums[r][0] = hn::MulAdd(value, left, sums[r][0]);
      sums[r][1] = hn::MulAdd(value, right, sums[r][1]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    T* to = c + r * c_stride;
    if (columns >= 2 * kLanes) {
      for (int j = 0; j < 2; ++j, to += kLanes) {
        auto sum = add ? hn::Add(hn::LoadU(d, to), sums[r][j]) : sums[r][j];
        if (bias != nullptr) sum = hn::Add(sum, hn::LoadU(d, bias + j * kLanes));
        hn::StoreU(sum, d, to);
      }
      continue;
    }
    HWY_ALIGN T row[2 * kLanes];
    hn::Store(sums[r][0], d, row);
    hn::Store(sums[r][1], d, row + kLanes);
    for (int64_t j = 0; j < columns; ++j) {
      if (add) row[j] += to[j];
      to[j] = bias == nullptr ? row[j] : row[j] + bias[j];
    }
  }
}

template <typename T>
using RowsKernel = void (*)(const T*, Pair<T>, Pair<T>, int64_t, bool, const T*, int64_t, T*,
                            int64_t);

template <typename T, size_t... kIndex>
constexpr std::array<RowsKernel<T>, sizeof...(kIndex)> RowsKernels(std::index_sequence<kIndex...>) {
  return {MultiplyRows<T, static_cast<int>(kIndex) + 1>...};
}

// Splits rows into groups of nearly the same size: a remainder of one or two rows would load B for
// little work. There is a row. Calls body(row, count) for each group.
template <typename T, typename Body>
void ForEachGroup(int64_t rows, const Body& body) {
  const int64_t groups = (rows + kMaxRows<T> - 1) / kMaxRows<T>;
  const int64_t smallest = rows / groups;
  const int64_t larger = rows % groups;  // groups that have one row more
  for (int64_t g = 0, row = 0; g < groups; ++g) {
    const int64_t count = smallest + (g < larger ? 1 : 0);
    body(row, count);
    row += count;
  }
}

// Multiplies the copy of columns [p, p + depth) of A with these rows of the panels.
template <typename T>
void MultiplyPanels(const ProductPart<T>& part, int64_t p, int64_t depth, const T* copy) {
  static constexpr auto kKernels = RowsKernels<T>(std::make_index_sequence<kMaxRows<T>>());
  constexpr int64_t kWidth = PackedProduct<T>::kPanelColumns;
  constexpr int64_t kPairColumns = 2 * kLanesOf<T>;
  const auto at = [&](int64_t column) {
    return part.panels + column / kWidth * kWidth * part.depth + column % kWidth + p * kWidth;
  };
  const auto pair_at = [&](int64_t column) {
    return Pair<T>{at(column), at(column + kLanesOf<T>)};
  };
  for (int64_t column = 0; column < part.columns; column += kPairColumns) {
    const Pair<T> pair = pair_at(column);
    const bool is_last = column + kPairColumns >= part.columns;
    const Pair<T> next = is_last ? pair : pair_at(column + kPairColumns);
    const bool adds_bias = part.bias != nullptr && p + depth == part.depth;
    const T* bias = adds_bias ? part.bias + column : nullptr;
    ForEachGroup<T>(part.rows, [&](int64_t row, int64_t count) {
      // The first two or three groups ask for all of the next pair, which is quicker than if one
      // does. Later groups find it in the cache.
      kKernels[static_cast<size_t>(count - 1)](
          copy + row * depth, pair, row < 2 * kMaxRows<T> ? next : pair, depth, part.add || p > 0,
          bias, part.columns - column, part.c + row * part.c_stride + column, part.c_stride);
    });
  }
}

// Copies kCount numbers in vectors, the last two of which may overlap.
template <int kCount, typename T>
HWY_INLINE void CopyFew(const T* from, T* to) {
  const hn::CappedTag<T, std::bit_floor(static_cast<size_t>(kCount))> d;
  constexpr int kStep = static_cast<int>(hn::MaxLanes(d));
  for (int i = 0; i + kStep <= kCount; i += kStep) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
  constexpr int kLast = kCount - kStep;
  if constexpr (kCount % kStep != 0) hn::StoreU(hn::LoadU(d, from + kLast), d, to + kLast);
}

// Copies the first of `depth` columns of kRows rows, as many as squares in registers hold. Returns
// their number. Each column is stored as a vector, whose rest the next column overwrites; up to
// kLanes numbers behind the last one are overwritten as well.
template <int kRows>
int64_t CopySquares(const float* const* from, int64_t depth, float* to) {
  const FloatTag d;
  int64_t q = 0;
  for (; q + kLanes <= depth; q += kLanes) {
    FloatVector square[kLanes];
    for (int64_t r = 0; r < kLanes; ++r)
      square[r] = r < kRows ? hn::LoadU(d, from[r] + q) : hn::Zero(d);
    TransposeLanes(square);
    for (int64_t i = 0; i < kLanes; ++i) hn::StoreU(square[i], d, to + (q + i) * kRows);
  }
  return q;
}

// Copies columns [p, p + depth) of kRows rows of A, from `first_row` on, by columns. The number of
// rows is a template argument so that a column is copied in few instructions. Up to kSlack numbers
// behind the copy are overwritten.
template <typename T, int kRows>
void CopyRows(const LeftMatrix<T>& a, int64_t first_row, int64_t p, int64_t depth, T* to) {
  if (a.is_transposed) {
    for (int64_t q = 0; q < depth; ++q) CopyFew<kRows>(a.rows[p + q] + first_row, to + q * kRows);
    return;
  }
  const T* from[kRows];
  for (int64_t r = 0; r < kRows; ++r) from[r] = a.rows[first_row + r] + p;
  int64_t q = 0;
  if constexpr (std::is_same_v<T, float> && kRows <= kLanes)
    q = CopySquares<kRows>(from, depth, to);
  for (; q < depth; ++q) {
    for (int64_t r = 0; r < kRows; ++r) to[q * kRows + r] = from[r][q];
  }
}

template <typename T>
using CopyKernel = void (*)(const LeftMatrix<T>&, int64_t, int64_t, int64_t, T*);

template <typename T, size_t... kIndex>
constexpr std::array<CopyKernel<T>, sizeof...(kIndex)> CopyKernels(std::index_sequence<kIndex...>) {
  return {CopyRows<T, static_cast<int>(kIndex) + 1>...};
}

// Copies columns [p, p + depth) of a block of A, group after group. What a group overwrites behind
// its copy is that of later groups. Of a transposed A, it takes a few rows of memory at a time: a
// cache has only a few lines for addresses that are a power of two apart, and a group reads a part
// of a line.
template <typename T>
void CopyBlock(const LeftMatrix<T>& a, int64_t first_row, int64_t rows, int64_t p, int64_t depth,
               T* copy) {
  static constexpr auto kKernels = CopyKernels<T>(std::make_index_sequence<kMaxRows<T>>());
  const int64_t step = a.is_transposed ? 8 : depth;
  for (int64_t q = 0; q < depth; q += step) {
    ForEachGroup<T>(rows, [&](int64_t row, int64_t count) {
      kKernels[static_cast<size_t>(count - 1)](a, first_row + row, p + q, std::min(step, depth - q),
                                               copy + row * depth + q * count);
    });
  }
}

// Without rows of B the sums are zero.
template <typename T>
void MultiplyPart(const LeftMatrix<T>& a, const ProductPart<T>& part) {
  HWY_ALIGN T copy[kBlockRows * PackedProduct<T>::kDepth + kSlack];
  int64_t p = 0;
  do {
    const int64_t depth = std::min(PackedProduct<T>::kDepth, part.depth - p);
    CopyBlock(a, part.first_row, part.rows, p, depth, copy);
    MultiplyPanels(part, p, depth, copy);
    p += PackedProduct<T>::kDepth;
  } while (p < part.depth);
}

void MultiplyFloats(const LeftMatrix<float>& a, const ProductPart<float>& part) {
  MultiplyPart(a, part);
}
void MultiplyDoubles(const LeftMatrix<double>& a, const ProductPart<double>& part) {
  MultiplyPart(a, part);
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(MultiplyFloats);
HWY_EXPORT(MultiplyDoubles);

namespace {

// The multiply-adds that are worth a thread.
constexpr int64_t kGrainWork = 1 << 16;
// The numbers of B whose packing is worth a thread.
constexpr int64_t kGrainNumbers = 1 << 14;

void MultiplyPart(const LeftMatrix<float>& a, const ProductPart<float>& part) {
  HWY_DYNAMIC_DISPATCH(MultiplyFloats)(a, part);
}
void MultiplyPart(const LeftMatrix<double>& a, const ProductPart<double>& part) {
  HWY_DYNAMIC_DISPATCH(MultiplyDoubles)(a, part);
}

// Splits a whole product into parts for the threads: ranges of pairs of panels if there are few
// rows, else ranges of blocks of rows, and of the pairs of the first and the last of these blocks.
template <typename T>
void MultiplyAll(const LeftMatrix<T>& a, const ProductPart<T>& whole, int64_t pairs) {
  constexpr int64_t kPairColumns = 2 * PackedProduct<T>::kPanelColumns;
  const int64_t blocks = (whole.rows + kBlockRows - 1) / kBlockRows;
  const int64_t work = std::min(kBlockRows, whole.rows) * whole.depth * kPairColumns;
  const int64_t grain = std::max<int64_t>(1, kGrainWork / std::max<int64_t>(1, work));
  ParallelFor(blocks * pairs, grain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t block = begin / pairs;
      const int64_t pair = begin % pairs;
      const int64_t count = std::min(pairs - pair, end - begin);
      ProductPart<T> part = whole;
      part.first_row = whole.rows * block / blocks;
      part.rows = whole.rows * (block + 1) / blocks - part.first_row;
      part.panels += pair * kPairColumns * whole.depth;
      part.columns = std::min(whole.columns - pair * kPairColumns, count * kPairColumns);
      part.c += part.first_row * whole.c_stride + pair * kPairColumns;
      if (part.bias != nullptr) part.bias += pair * kPairColumns;
      MultiplyPart(a, part);
      begin += count;
    }
  });
}

// Writes columns [column, column + kWidth) of a row; zeros for those that aren't there.
template <typename T>
void PackPanelRow(const T* row, int64_t column, int64_t columns, T* to) {
  constexpr int64_t kWidth = PackedProduct<T>::kPanelColumns;
  if (column + kWidth <= columns) {
    // A call of memmove, which std::copy_n is, would take longer than the copy.
    std::memcpy(to, row + column, kWidth * sizeof(T));
    return;
  }
  const int64_t count = std::max<int64_t>(0, columns - column);
  std::fill(std::copy_n(row + std::min(column, columns), count, to), to + kWidth, T{0});
}

// Writes `panels` panels, the first of which starts at column `first`. Goes down row by row, since
// rows are contiguous, with a few panels at a time: the rows of panels are a power of two apart,
// and a cache has only a few lines for such addresses. The rows of B are pages apart, so the
// hardware's prefetcher doesn't foresee them.
template <typename T>
void PackPanels(const MatrixRows<T>& rows, int64_t first, int64_t depth, int64_t columns,
                int64_t panels, T* packed) {
  constexpr int64_t kWidth = PackedProduct<T>::kPanelColumns;
  constexpr int64_t kPanels = 4;
  constexpr int64_t kRowsAhead = 8;
  for (int64_t begin = 0; begin < panels; begin += kPanels) {
    const int64_t end = std::min(panels, begin + kPanels);
    for (int64_t p = 0; p < depth; ++p) {
      const T* next = rows[std::min(p + kRowsAhead, depth - 1)];
      for (int64_t i = begin; i < end; ++i) {
        const int64_t column = first + i * kWidth;
        __builtin_prefetch(next + std::min(column, columns));
        PackPanelRow(rows[p], column, columns, packed + (i * depth + p) * kWidth);
      }
    }
  }
}

// The same for columns that are contiguous, `stride` apart. Goes down a few rows at a time, so that
// what it writes stays in the first-level cache until it is complete.
template <typename T>
void PackPanelOfColumns(const T* b, int64_t stride, int64_t depth, int64_t columns, T* to) {
  constexpr int64_t kWidth = PackedProduct<T>::kPanelColumns;
  constexpr int64_t kRows = 64;
  std::fill_n(to, columns < kWidth ? depth * kWidth : 0, T{0});
  for (int64_t first = 0; first < depth; first += kRows) {
    const int64_t rows = std::min(kRows, depth - first);
    for (int64_t j = 0; j < columns; ++j) {
      const T* from = b + j * stride + first;
      for (int64_t p = 0; p < rows; ++p) to[(first + p) * kWidth + j] = from[p];
    }
  }
}

// Calls pack(first panel, number of panels) for parts of all panels, in parallel.
template <typename T, typename PackPart>
void PackAll(int64_t depth, int64_t panels, const PackPart& pack) {
  const int64_t numbers = std::max<int64_t>(1, depth * PackedProduct<T>::kPanelColumns);
  ParallelFor(panels, std::max<int64_t>(1, kGrainNumbers / numbers),
              [&](int64_t begin, int64_t end) { pack(begin, end - begin); });
}

}  // namespace

template <typename T>
PackedProduct<T>::PackedProduct(int64_t depth, int64_t columns)
    : depth_(depth),
      columns_(columns),
      pairs_((columns + 2 * kPanelColumns - 1) / (2 * kPanelColumns)) {}

template <typename T>
int64_t PackedProduct<T>::bytes() const {
  return ByteCount(MultiplyCounts(depth_, 2 * pairs_ * kPanelColumns), kDTypeOf<T>);
}

template <typename T>
void PackedProduct<T>::Pack(const T* b, int64_t row_stride, int64_t column_stride,
                            T* packed) const {
  if (column_stride == 1) return Pack({.first = b, .stride = row_stride}, packed);
  PackAll<T>(depth_, 2 * pairs_, [&](int64_t begin, int64_t count) {
    for (int64_t panel = begin; panel < begin + count; ++panel) {
      const int64_t first = panel * kPanelColumns;
      const int64_t columns = std::clamp<int64_t>(columns_ - first, 0, kPanelColumns);
      PackPanelOfColumns(b + std::min(first, columns_) * column_stride, column_stride, depth_,
                         columns, packed + first * depth_);
    }
  });
}

template <typename T>
void PackedProduct<T>::Pack(const MatrixRows<T>& b, T* packed) const {
  PackAll<T>(depth_, 2 * pairs_, [&](int64_t begin, int64_t count) {
    const int64_t first = begin * kPanelColumns;
    PackPanels(b, first, depth_, columns_, count, packed + first * depth_);
  });
}

template <typename T>
void PackedProduct<T>::Multiply(const MatrixRows<T>& a, int64_t rows, const T* packed, bool add,
                                T* c, int64_t c_stride, const T* bias) const {
  MultiplyAll<T>({a, false}, {0, rows, packed, depth_, columns_, add, c, c_stride, bias}, pairs_);
}

template <typename T>
void PackedProduct<T>::MultiplyTransposed(const MatrixRows<T>& a, int64_t rows, const T* packed,
                                          bool add, T* c, int64_t c_stride, const T* bias) const {
  MultiplyAll<T>({a, true}, {0, rows, packed, depth_, columns_, add, c, c_stride, bias}, pairs_);
}

template class PackedProduct<float>;
template class PackedProduct<double>;

}  // namespace skiff
#endif
