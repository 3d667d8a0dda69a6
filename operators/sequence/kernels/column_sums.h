// The sums of the columns of a matrix whose number of rows may be another one in each run.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/base/parallel.h"
#include "operators/common/half.h"

namespace skiff {

// Sets sums[i] to the sum of column i of `rows` rows, which are `stride` apart. Adds up some rows
// at a time, so that rounding errors stay small; the order depends only on `rows`. Sums of half are
// rounded once.
template <typename From, typename T>
void AddUpColumns(const From* matrix, int64_t rows, int64_t stride, int64_t columns, T* sums) {
  using Wide = WideType<T>;
  constexpr int64_t kRows = 64;
  constexpr int64_t kColumns = 64;
  ParallelFor(columns, kColumns, [=](int64_t begin, int64_t end) {
    for (int64_t column = begin; column < end; column += kColumns) {
      const int64_t count = std::min(kColumns, end - column);
      Wide total[kColumns] = {};
      for (int64_t first = 0; first < rows; first += kRows) {
        Wide part[kColumns] = {};
        for (int64_t row = first; row < std::min(rows, first + kRows); ++row) {
          const From* from = matrix + row * stride + column;
          for (int64_t i = 0; i < count; ++i) part[i] += static_cast<Wide>(from[i]);
        }
        for (int64_t i = 0; i < count; ++i) total[i] += part[i];
      }
      for (int64_t i = 0; i < count; ++i) sums[column + i] = static_cast<T>(total[i]);
    }
  });
}

}  // namespace skiff
