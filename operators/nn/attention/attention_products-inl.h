// Copies and products of the matrices of a tile of attention (attention_tiles.h).
//
// Included once per instruction set, through Highway's foreach_target.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "hwy/highway.h"
#include "operators/common/cpu/transpose_lanes-inl.h"
#include "operators/nn/attention/attention_tiles.h"

#if defined(SKIFF_OPERATORS_NN_ATTENTION_ATTENTION_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SKIFF_OPERATORS_NN_ATTENTION_ATTENTION_PRODUCTS_INL_H_
#undef SKIFF_OPERATORS_NN_ATTENTION_ATTENTION_PRODUCTS_INL_H_
#else
#define SKIFF_OPERATORS_NN_ATTENTION_ATTENTION_PRODUCTS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
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

// The first elements, at most `count`, and zeros.
template <typename T>
HWY_INLINE hn::Vec<TagOf<T>> LoadStart(const T* from, int64_t count) {
  const TagOf<T> d;
  if (count >= kLanesOf<T>) return hn::LoadU(d, from);
  HWY_ALIGN T lanes[kLanesOf<T>] = {};
  for (int64_t i = 0; i < count; ++i) lanes[i] = from[i];
  return hn::Load(d, lanes);
}

// Rows of PaddedWidth(width) elements.
template <typename T>
void CopyRows(const HeadRows<const T>& from, int64_t first, int64_t count, int64_t width, T* to) {
  const int64_t padded = RoundUp(width, kPadding);
  for (int64_t row = 0; row < count; ++row, to += padded) {
    std::memcpy(to, from.data + (first + row) * from.stride,
                static_cast<size_t>(width) * sizeof(T));
    std::fill(to + width, to + padded, T{0});
  }
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

// to = factor * row_factors[r] * from, or to += that, for `count` rows r. Without row_factors,
// nullptr, these are 1.
template <typename T>
void StoreRows(const T* from, T factor, const T* row_factors, bool add, int64_t count,
               int64_t width, int64_t first, const HeadRows<T>& to) {
  const TagOf<T> d;
  for (int64_t row = 0; row < count; ++row, from += RoundUp(width, kPadding)) {
    T* line = to.data + (first + row) * to.stride;
    const T scale = row_factors == nullptr ? factor : factor * row_factors[row];
    const auto scales = hn::Set(d, scale);
    int64_t i = 0;
    for (; i + kLanesOf<T> <= width; i += kLanesOf<T>) {
      const auto product = hn::Mul(hn::Load(d, from + i), scales);
      hn::StoreU(add ? hn::Add(hn::LoadU(d, line + i), product) : product, d, line + i);
    }
    for (; i < width; ++i) line[i] = add ? line[i] + from[i] * scale : from[i] * scale;
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

// A matrix whose rows are whole vectors.
template <typename T>
struct RightFactor {
  const T* data;
  int64_t stride;  // of rows
};

// A block of a product: kProductRows rows and kVectors vectors of columns. Each element is summed
// from zero, whatever it is then added to.
template <int kVectors, bool kByColumns, typename T>
void MultiplyBlock(const LeftFactor<kByColumns, T>& a, const T* b, int64_t b_stride, int64_t depth,
                   const ProductSums<T>& to) {
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
    for (int j = 0; j < kVectors; ++j) column[j] = hn::LoadU(d, b + j * kLanesOf<T>);
#pragma GCC unroll 8
    for (int64_t r = 0; r < kRows; ++r) {
      const auto value = hn::Set(d, left[r * row_step]);
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) sums[r][j] = hn::MulAdd(value, column[j], sums[r][j]);
    }
  }
  const auto factor = hn::Set(d, to.factor);
#pragma GCC unroll 8
  for (int64_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) {
      T* c = to.data + r * to.stride + j * kLanesOf<T>;
      auto sum = hn::Mul(sums[r][j], factor);
      if (to.add) {
        auto before = hn::LoadU(d, c);
        if (to.row_factors != nullptr) before = hn::Mul(before, hn::Set(d, to.row_factors[r]));
        sum = hn::Add(before, sum);
      }
      hn::StoreU(sum, d, c);
    }
  }
}

// The product of a left factor and a matrix with `depth` rows. Writes whole blocks: rows and
// columns beyond `rows` and `columns` get values of no meaning.
template <bool kByColumns, typename T>
void Multiply(const LeftFactor<kByColumns, T>& a, const RightFactor<T>& b, int64_t rows,
              int64_t columns, int64_t depth, const ProductSums<T>& to, RowsAhead* ahead) {
  for (int64_t row = 0; row < rows; row += kProductRows<T>) {
    int64_t column = 0;
    for (; columns - column > kLanesOf<T>; column += 2 * kLanesOf<T>) {
      ahead->Fetch();
      MultiplyBlock<2>(a.From(row), b.data + column, b.stride, depth, to.From(row, column));
    }
    if (column < columns)
      MultiplyBlock<1>(a.From(row), b.data + column, b.stride, depth, to.From(row, column));
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

// `count` rows as a left factor: in place, if they make whole blocks, else as a copy.
template <typename T>
LeftFactor<false, T> LeftRows(const HeadRows<const T>& from, int64_t first, int64_t count,
                              int64_t width, T* copy) {
  if (count % kProductRows<T> == 0) return {from.data + first * from.stride, from.stride};
  CopyRows(from, first, count, width, copy);
  return {copy, RoundUp(width, kPadding)};
}

// `count` rows as a right factor: in place, if they make whole vectors, else as a copy.
template <typename T>
RightFactor<T> RightRows(const HeadRows<const T>& from, int64_t first, int64_t count, int64_t width,
                         T* copy) {
  if (width % kPadding == 0) return {from.data + first * from.stride, from.stride};
  CopyRows(from, first, count, width, copy);
  return {copy, RoundUp(width, kPadding)};
}

// Sets `count` rows, from row `first` on, to factor * a · b, or adds that to them. `sums` is
// scratch memory for so many padded rows.
template <bool kByColumns, typename T>
void MultiplyInto(const LeftFactor<kByColumns, T>& a, const RightFactor<T>& b, int64_t depth,
                  T factor, bool add, int64_t first, int64_t count, int64_t width,
                  const HeadRows<T>& to, T* sums, RowsAhead* ahead) {
  const int64_t padded = RoundUp(width, kPadding);
  if (count % kProductRows<T> == 0 && width == padded) {
    T* data = to.data + first * to.stride;
    const ProductSums<T> rows = {.data = data, .stride = to.stride, .factor = factor, .add = add};
    return Multiply(a, b, count, width, depth, rows, ahead);
  }
  Multiply(a, b, count, padded, depth, ProductSums<T>{.data = sums, .stride = padded}, ahead);
  StoreRows<T>(sums, factor, nullptr, add, count, width, first, to);
}

}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
