#include "operators/tensor/transpose_tile_shared.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/tensor/transpose_tile_shared.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace skiff {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR
void Transpose4x4(const uint32_t* source, int64_t source_stride, uint32_t* target,
                  int64_t target_stride) {
  const hn::FixedTag<uint32_t, 4> words;
  const hn::FixedTag<uint64_t, 2> pairs;
  const auto row0 = hn::LoadU(words, source);
  const auto row1 = hn::LoadU(words, source + source_stride);
  const auto row2 = hn::LoadU(words, source + 2 * source_stride);
  const auto row3 = hn::LoadU(words, source + 3 * source_stride);
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(words, row0, row1));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(words, row2, row3));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(words, row0, row1));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(words, row2, row3));
  hn::StoreU(hn::BitCast(words, hn::InterleaveLower(pairs, low01, low23)), words, target);
  hn::StoreU(hn::BitCast(words, hn::InterleaveUpper(pairs, low01, low23)), words,
             target + target_stride);
  hn::StoreU(hn::BitCast(words, hn::InterleaveLower(pairs, high01, high23)), words,
             target + 2 * target_stride);
  hn::StoreU(hn::BitCast(words, hn::InterleaveUpper(pairs, high01, high23)), words,
             target + 3 * target_stride);
}
#endif

void TransposeWords(const uint32_t* source, int64_t source_stride, uint32_t* target,
                    int64_t target_stride, int64_t rows, int64_t columns) {
  int64_t whole_rows = 0;
  int64_t whole_columns = 0;
#if HWY_TARGET != HWY_SCALAR
  whole_rows = rows / 4 * 4;
  whole_columns = columns / 4 * 4;
  for (int64_t column = 0; column < whole_columns; column += 4) {
    for (int64_t row = 0; row < whole_rows; row += 4) {
      Transpose4x4(source + row * source_stride + column, source_stride,
                   target + column * target_stride + row, target_stride);
    }
  }
#endif
  for (int64_t column = 0; column < columns; ++column) {
    for (int64_t row = column < whole_columns ? whole_rows : 0; row < rows; ++row) {
      target[column * target_stride + row] = source[row * source_stride + column];
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace skiff
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(TransposeWords);

void TransposeTile(const uint32_t* source, int64_t source_stride, uint32_t* target,
                   int64_t target_stride, int64_t rows, int64_t columns) {
  HWY_DYNAMIC_DISPATCH(TransposeWords)
  (source, source_stride, target, target_stride, rows, columns);
}

}  // namespace skiff
#endif
