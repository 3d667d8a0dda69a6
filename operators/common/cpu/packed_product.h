// Products with a matrix that is packed once for many of them: a recurrent layer multiplies the
// states of some sequences, in varying numbers, with its weights in every time step, and the rows
// of all steps with other weights.
#pragma once

#include <cstdint>

#include "operators/common/cpu/matrix_rows.h"

namespace skiff {

// The product with op(B) [depth, columns], which is packed in panels of a few columns each, row
// after row. T is float or double.
//
// The order in which an element is summed depends only on `depth`. So its bits depend neither on
// the other rows of A nor on the number of threads.
template <typename T>
class PackedProduct {
 public:
  // Of a panel.
  static constexpr int64_t kPanelColumns = 64 / sizeof(T);
  // The rows of B whose products are summed at a time: as much of a panel stays in the first-level
  // cache while all rows of A pass. Each part is summed from zero, which keeps rounding errors
  // small.
  static constexpr int64_t kDepth = 256;

  PackedProduct(int64_t depth, int64_t columns);

  // Of the packed matrix.
  int64_t bytes() const;
  // Packs a matrix whose element (p, j) is b[p * row_stride + j * column_stride]; one of the two
  // strides is 1.
  void Pack(const T* b, int64_t row_stride, int64_t column_stride, T* packed) const;
  // Packs the matrix of these rows.
  void Pack(const MatrixRows<T>& b, T* packed) const;
  // c = a * op(B), or c += a * op(B), for `rows` rows of a. Then adds a bias [columns], if it isn't
  // nullptr, to each row of c.
  void Multiply(const MatrixRows<T>& a, int64_t rows, const T* packed, bool add, T* c,
                int64_t c_stride, const T* bias = nullptr) const;
  // The same with the transpose of a [depth, rows].
  void MultiplyTransposed(const MatrixRows<T>& a, int64_t rows, const T* packed, bool add, T* c,
                          int64_t c_stride, const T* bias = nullptr) const;

 private:
  int64_t depth_;
  int64_t columns_;
  int64_t pairs_;  // of panels
};

extern template class PackedProduct<float>;
extern template class PackedProduct<double>;

}  // namespace skiff
