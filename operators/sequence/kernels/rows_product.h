// The product that the gradient of weights is: a sum over the rows of all time steps.
#pragma once

#include <cstdint>

#include "operators/sequence/kernels/recurrent_weight.h"

namespace skiff {

// C = A^T · B for matrices with equally many rows, another number of them in each run.
template <typename T>
class RowsProduct {
 public:
  // B has at most `max_rows` rows of `columns`.
  RowsProduct(PrepareContext& context, int64_t max_rows, int64_t columns)
      : columns_(columns),
        packed_(context.RequestWorkspace(PackedProduct<T>(max_rows, columns).bytes())) {}

  // Returns the same product for a B of fewer columns, in the same workspace.
  RowsProduct WithColumns(int64_t columns) const { return RowsProduct(columns, packed_); }

  // Sets B. It stays until another product uses the workspace.
  void Pack(const KernelContext& run, const MatrixRows<T>& b, int64_t rows) const {
    PackedProduct<T>(rows, columns_).Pack(b, static_cast<T*>(run.workspace(packed_)));
  }
  // Sets c [a_columns, columns].
  void Multiply(const KernelContext& run, const MatrixRows<T>& a, int64_t a_columns, int64_t rows,
                T* c) const {
    PackedProduct<T>(rows, columns_)
        .MultiplyTransposed(a, a_columns, static_cast<const T*>(run.workspace(packed_)), false, c,
                            columns_);
  }

 private:
  RowsProduct(int64_t columns, int packed) : columns_(columns), packed_(packed) {}

  int64_t columns_;
  int packed_;
};

}  // namespace skiff
