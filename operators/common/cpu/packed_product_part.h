// How packed_product.cc splits a product.
#pragma once

#include <cstdint>

#include "operators/common/cpu/matrix_rows.h"

namespace skiff {

// The most rows of a block of A, a multiple of the rows whose sums fit into registers. kDepth
// columns of them stay in the second-level cache.
inline constexpr int64_t kBlockRows = 168;

// A matrix A, whose element (row, p) is rows[row][p] or, if `is_transposed`, rows[p][row].
template <typename T>
struct LeftMatrix {
  MatrixRows<T> rows;
  bool is_transposed = false;
};

// The product of some rows of A and some panels.
template <typename T>
struct ProductPart {
  int64_t first_row = 0;
  int64_t rows = 0;
  const T* panels = nullptr;
  int64_t depth = 0;
  int64_t columns = 0;
  bool add = false;
  T* c = nullptr;  // of the first row and column
  int64_t c_stride = 0;
  const T* bias = nullptr;  // of the first column; nullptr: none is added
};

}  // namespace skiff
