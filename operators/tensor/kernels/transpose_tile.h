// A small two-dimensional transpose, which is an inner loop of StridedCopy.
#pragma once

#include <cstdint>

namespace skiff {

// Sets target[column * target_stride + row] = source[row * source_stride + column] for row < rows
// and column < columns. Strides are in elements. With `streams` it may bypass the caches
// (stream_copy.h).
template <typename Word>
void TransposeTile(const Word* source, int64_t source_stride, Word* target, int64_t target_stride,
                   int64_t rows, int64_t columns, bool /*streams*/) {
  for (int64_t column = 0; column < columns; ++column) {
    for (int64_t row = 0; row < rows; ++row) {
      target[column * target_stride + row] = source[row * source_stride + column];
    }
  }
}

// Does the same for four-byte elements, in squares that fit vector registers.
void TransposeTile(const uint32_t* source, int64_t source_stride, uint32_t* target,
                   int64_t target_stride, int64_t rows, int64_t columns, bool streams);

}  // namespace skiff
