// The sums of some rows of A and two vectors of columns stay in registers, as many rows as fit. A
// panel has the same columns for every instruction set: the longest vector. A thread takes whole
// pairs of panels, so its part of B stays in its cache from one product to the next.
#include "operators/sequence/kernels/packed_product.h"

#include <algorithm>
#include <array>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/sequence/kernels/packed_product.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace skiff {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
using TagOf = hn::CappedTag<T, 64 / sizeof(T)>;
template <typename T>
constexpr int64_t kLanesOf = static_cast<int64_t>(hn::MaxLanes(TagOf<T>()));

// 32 registers: 28 sums, 2 vectors of B, a number of A. 16 registers: 12 sums.
template <typename T>
constexpr int64_t kMaxRows = kLanesOf<T> * sizeof(T) == 64 ? 14 : 6;

// The rows of B whose products are summed at a time: as much of a panel stays in the first-level
// cache while all rows of A pass. Each part is summed from zero, which keeps rounding errors small.
constexpr int64_t kDepth = 256;

// c[kRows, columns] = a * B, or c += that, for `depth` rows and two vectors of columns of B; `left`
// and `right` are in one panel or in two. The number of rows is a template argument so that the
// sums stay in registers.
template <typename T, int kRows>
void MultiplyRows(const T* a, int64_t a_stride, const T* left, const T* right, int64_t depth,
                  bool add, int64_t columns, T* c, int64_t c_stride) {
  const TagOf<T> d;
  constexpr int64_t kLanes = kLanesOf<T>;
  constexpr int64_t kStep = PackedProduct<T>::kPanelColumns;
  hn::Vec<TagOf<T>> sums[kRows][2];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) sums[r][0] = sums[r][1] = hn::Zero(d);
  for (int64_t p = 0; p < depth; ++p, left += kStep, right += kStep) {
    const auto left_vector = hn::LoadU(d, left);
    const auto right_vector = hn::LoadU(d, right);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const auto value = hn::Set(d, a[r * a_stride + p]);
      sums[r][0] = hn::MulAdd(value, left_vector, sums[r][0]);
      sums[r][1] = hn::MulAdd(value, right_vector, sums[r][1]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    T* to = c + r * c_stride;
    if (columns >= 2 * kLanes) {
      for (int j = 0; j < 2; ++j, to += kLanes)
        hn::StoreU(add ? hn::Add(hn::LoadU(d, to), sums[r][j]) : sums[r][j], d, to);
      continue;
    }
    HWY_ALIGN T row[2 * kLanes];
    hn::Store(sums[r][0], d, row);
    hn::Store(sums[r][1], d, row + kLanes);
    for (int64_t j = 0; j < columns; ++j) to[j] = add ? to[j] + row[j] : row[j];
  }
}

template <typename T>
using RowsKernel = void (*)(const T*, int64_t, const T*, const T*, int64_t, bool, int64_t, T*,
                            int64_t);

template <typename T, size_t... kIndex>
constexpr std::array<RowsKernel<T>, sizeof...(kIndex)> RowsKernels(std::index_sequence<kIndex...>) {
  return {MultiplyRows<T, static_cast<int>(kIndex) + 1>...};
}

// Multiplies with a pair of panels.
template <typename T>
void MultiplyPair(const T* a, int64_t rows, int64_t a_stride, const T* pair, int64_t depth,
                  bool add, int64_t columns, T* c, int64_t c_stride) {
  static constexpr auto kKernels = RowsKernels<T>(std::make_index_sequence<kMaxRows<T>>());
  constexpr int64_t kWidth = PackedProduct<T>::kPanelColumns;
  // Groups of nearly the same size. A remainder of one or two rows would load B for little work.
  const int64_t groups = (rows + kMaxRows<T> - 1) / kMaxRows<T>;
  for (int64_t column = 0; column < columns; column += 2 * kLanesOf<T>) {
    const int64_t right_column = column + kLanesOf<T>;
    const T* left = pair + column / kWidth * kWidth * depth + column % kWidth;
    const T* right = pair + right_column / kWidth * kWidth * depth + right_column % kWidth;
    // Without rows of B the sums are zero.
    int64_t p = 0;
    do {
      for (int64_t g = 0; g < groups; ++g) {
        const int64_t row = rows * g / groups;
        const int64_t next = rows * (g + 1) / groups;
        kKernels[static_cast<size_t>(next - row - 1)](
            a + row * a_stride + p, a_stride, left + p * kWidth, right + p * kWidth,
            std::min(kDepth, depth - p), add || p > 0, columns - column,
            c + row * c_stride + column, c_stride);
      }
      p += kDepth;
    } while (p < depth);
  }
}

void MultiplyFloats(const float* a, int64_t rows, int64_t a_stride, const float* pair,
                    int64_t depth, bool add, int64_t columns, float* c, int64_t c_stride) {
  MultiplyPair(a, rows, a_stride, pair, depth, add, columns, c, c_stride);
}
void MultiplyDoubles(const double* a, int64_t rows, int64_t a_stride, const double* pair,
                     int64_t depth, bool add, int64_t columns, double* c, int64_t c_stride) {
  MultiplyPair(a, rows, a_stride, pair, depth, add, columns, c, c_stride);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace skiff
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(MultiplyFloats);
HWY_EXPORT(MultiplyDoubles);

namespace {

// The multiply-adds that are worth a thread.
constexpr int64_t kGrainWork = 1 << 16;

void Multiply(const float* a, int64_t rows, int64_t a_stride, const float* pair, int64_t depth,
              bool add, int64_t columns, float* c, int64_t c_stride) {
  HWY_DYNAMIC_DISPATCH(MultiplyFloats)
  (a, rows, a_stride, pair, depth, add, columns, c, c_stride);
}
void Multiply(const double* a, int64_t rows, int64_t a_stride, const double* pair, int64_t depth,
              bool add, int64_t columns, double* c, int64_t c_stride) {
  HWY_DYNAMIC_DISPATCH(MultiplyDoubles)
  (a, rows, a_stride, pair, depth, add, columns, c, c_stride);
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
  ParallelFor(2 * pairs_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t first = panel * kPanelColumns;
      const int64_t columns = std::clamp<int64_t>(columns_ - first, 0, kPanelColumns);
      T* to = packed + first * depth_;
      for (int64_t p = 0; p < depth_; ++p, to += kPanelColumns) {
        const T* from = b + p * row_stride + first * column_stride;
        for (int64_t j = 0; j < columns; ++j) to[j] = from[j * column_stride];
        std::fill(to + columns, to + kPanelColumns, T{0});
      }
    }
  });
}

template <typename T>
void PackedProduct<T>::Multiply(const T* a, int64_t rows, int64_t a_stride, const T* packed,
                                bool add, T* c, int64_t c_stride) const {
  const int64_t pair_work = std::max<int64_t>(1, rows * depth_ * 2 * kPanelColumns);
  ParallelFor(
      pairs_, std::max<int64_t>(1, kGrainWork / pair_work), [&](int64_t begin, int64_t end) {
        for (int64_t pair = begin; pair < end; ++pair) {
          const int64_t first = pair * 2 * kPanelColumns;
          skiff::Multiply(a, rows, a_stride, packed + first * depth_, depth_, add,
                          std::min(2 * kPanelColumns, columns_ - first), c + first, c_stride);
        }
      });
}

template class PackedProduct<float>;
template class PackedProduct<double>;

}  // namespace skiff
#endif
