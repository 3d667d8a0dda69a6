#include "operators/tensor/kernels/transpose_tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/tensor/kernels/transpose_tile.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "operators/common/cpu/transpose_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Transposes a square of kLanes x kLanes in registers. If a vector is a cache line, it reads and
// writes whole lines, so it doesn't matter that lines at distances of a power of two compete for a
// few places in the first-level cache.
template <bool kStreams>
HWY_INLINE void TransposeSquare(const uint32_t* source, int64_t source_stride, uint32_t* target,
                                int64_t target_stride) {
  const FloatTag floats;
  const hn::RebindToUnsigned<FloatTag> words;
  FloatVector rows[kLanes];
  for (int64_t i = 0; i < kLanes; ++i)
    rows[i] = hn::BitCast(floats, hn::LoadU(words, source + i * source_stride));
  TransposeLanes(rows);
  for (int64_t i = 0; i < kLanes; ++i) {
    const auto row = hn::BitCast(words, rows[i]);
    if constexpr (kStreams) {
      hn::Stream(row, words, target + i * target_stride);
    } else {
      hn::StoreU(row, words, target + i * target_stride);
    }
  }
}

template <bool kStreams>
void TransposeSquares(const uint32_t* source, int64_t source_stride, uint32_t* target,
                      int64_t target_stride, int64_t rows, int64_t columns) {
  for (int64_t column = 0; column < columns; column += kLanes) {
    for (int64_t row = 0; row < rows; row += kLanes) {
      TransposeSquare<kStreams>(source + row * source_stride + column, source_stride,
                                target + column * target_stride + row, target_stride);
    }
  }
}

void TransposeWords(const uint32_t* source, int64_t source_stride, uint32_t* target,
                    int64_t target_stride, int64_t rows, int64_t columns, bool streams) {
  const int64_t whole_rows = rows / kLanes * kLanes;
  const int64_t whole_columns = columns / kLanes * kLanes;
  // A streaming store needs a vector's alignment.
  const bool is_aligned =
      reinterpret_cast<uintptr_t>(target) % sizeof(FloatVector) == 0 && target_stride % kLanes == 0;
  const auto squares = streams && is_aligned ? TransposeSquares<true> : TransposeSquares<false>;
  squares(source, source_stride, target, target_stride, whole_rows, whole_columns);
  // The words to the right of and below the squares.
  for (int64_t column = 0; column < columns; ++column) {
    for (int64_t row = column < whole_columns ? whole_rows : 0; row < rows; ++row) {
      target[column * target_stride + row] = source[row * source_stride + column];
    }
  }
}

}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(TransposeWords);

void TransposeTile(const uint32_t* source, int64_t source_stride, uint32_t* target,
                   int64_t target_stride, int64_t rows, int64_t columns, bool streams) {
  HWY_DYNAMIC_DISPATCH(TransposeWords)
  (source, source_stride, target, target_stride, rows, columns, streams);
}

}  // namespace skiff
#endif
