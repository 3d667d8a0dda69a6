// The product of a matrix with a few rows, another number of them each time, and a matrix that
// stays the same: a recurrent layer multiplies the states of some sequences with its weights in
// every time step.
#pragma once

#include <cstdint>

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

  PackedProduct(int64_t depth, int64_t columns);

  // Of the packed matrix.
  int64_t bytes() const;
  // Packs a matrix whose element (p, j) is b[p * row_stride + j * column_stride].
  void Pack(const T* b, int64_t row_stride, int64_t column_stride, T* packed) const;
  // c = a * op(B), or c += a * op(B), for `rows` rows of a, which are a_stride apart.
  void Multiply(const T* a, int64_t rows, int64_t a_stride, const T* packed, bool add, T* c,
                int64_t c_stride) const;

 private:
  int64_t depth_;
  int64_t columns_;
  int64_t pairs_;  // of panels
};

extern template class PackedProduct<float>;
extern template class PackedProduct<double>;

}  // namespace skiff
