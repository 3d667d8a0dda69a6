// Products of bfloat16 matrices by the processor's instructions for them. They multiply pairs of
// neighbours along the dim that is summed over, add both products to a float32, and take denormal
// numbers as zeros.
//
// A matrix B is packed, for one product or for many: see packed_product.h, which is the same for
// float32 and float64.
#pragma once

#include <cstdint>

#include "operators/common/half.h"

namespace skiff {

// A matrix A, whose element (row, p) is first[row * stride + p] or, if `is_transposed`,
// first[p * stride + row].
struct Bf16Matrix {
  const BFloat16* first = nullptr;
  int64_t stride = 0;
  bool is_transposed = false;
};

// What becomes of the sums: c = alpha * sum + beta * c + bias, rounded once. C is BFloat16 or
// float.
template <typename C>
struct Bf16Result {
  C* c = nullptr;
  int64_t stride = 0;
  float alpha = 1;
  float beta = 0;                  // 0: c is overwritten, whatever it contains
  const BFloat16* bias = nullptr;  // [columns], or nullptr: none
};

// The product with op(B) [depth, columns]. The order in which an element is summed depends only on
// `depth`. So its bits depend neither on the other rows of A nor on the number of threads.
// Everything but the sizes needs UsesAvx512Bf16().
class Bf16Product {
 public:
  // Of a panel of the packed matrix.
  static constexpr int64_t kPanelColumns = 32;

  Bf16Product(int64_t depth, int64_t columns);

  // Of the packed matrix.
  int64_t bytes() const;
  // Packs a matrix whose element (p, j) is b[p * row_stride + j * column_stride]; one of the two
  // strides is 1.
  void Pack(const BFloat16* b, int64_t row_stride, int64_t column_stride, void* packed) const;
  // The scratch memory for a transposed A of so many rows.
  int64_t ScratchBytes(int64_t rows) const;
  // Multiplies `rows` rows of A. If A isn't transposed, `scratch` isn't used.
  void Multiply(const Bf16Matrix& a, int64_t rows, const void* packed, void* scratch,
                const Bf16Result<BFloat16>& result) const;
  void Multiply(const Bf16Matrix& a, int64_t rows, const void* packed, void* scratch,
                const Bf16Result<float>& result) const;

 private:
  int64_t depth_;
  int64_t columns_;
};

}  // namespace skiff
