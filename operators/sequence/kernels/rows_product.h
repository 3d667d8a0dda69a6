// The product that the gradient of weights is: a sum over the rows of all time steps.
#pragma once

#include <algorithm>
#include <cstdint>

#include "operators/sequence/kernels/recurrent_weight.h"
#include "operators/sequence/kernels/workspace.h"

namespace skiff {

// C = A^T · B for matrices with equally many rows, another number of them in each run.
template <typename T>
class RowsProduct {
 public:
  // A and B have at most `max_rows` rows, of `max_a_columns` at most and of `columns`.
  RowsProduct(PrepareContext& context, int64_t max_rows, int64_t columns, int64_t /*max_a_columns*/)
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

// C is rounded once. A is packed, too; rows that aren't a `stride` apart are copied before.
template <>
class RowsProduct<BFloat16> {
 public:
  RowsProduct(PrepareContext& context, int64_t max_rows, int64_t columns, int64_t max_a_columns)
      : columns_(columns),
        packed_(context.RequestWorkspace(Bf16Product(max_rows, columns).bytes())),
        scratch_(
            context.RequestWorkspace(Bf16Product(max_rows, columns).ScratchBytes(max_a_columns))),
        rows_(context, max_rows, std::max(columns, max_a_columns)) {}

  RowsProduct WithColumns(int64_t columns) const {
    RowsProduct other = *this;
    other.columns_ = columns;
    return other;
  }

  void Pack(const KernelContext& run, const MatrixRows<BFloat16>& b, int64_t rows) const {
    const MatrixRows<BFloat16> from = Evenly(run, b, columns_, rows);
    Bf16Product(rows, columns_).Pack(from.first, from.stride, 1, run.workspace(packed_));
  }
  void Multiply(const KernelContext& run, const MatrixRows<BFloat16>& a, int64_t a_columns,
                int64_t rows, BFloat16* c) const {
    const MatrixRows<BFloat16> from = Evenly(run, a, a_columns, rows);
    const Bf16Result<BFloat16> result = {.c = c, .stride = columns_};
    Bf16Product(rows, columns_)
        .Multiply({.first = from.first, .stride = from.stride, .is_transposed = true}, a_columns,
                  run.workspace(packed_), run.workspace(scratch_), result);
  }

 private:
  // Returns the rows a stride apart.
  MatrixRows<BFloat16> Evenly(const KernelContext& run, const MatrixRows<BFloat16>& matrix,
                              int64_t columns, int64_t rows) const {
    if (matrix.each == nullptr) return matrix;
    BFloat16* to = rows_(run);
    for (int64_t i = 0; i < rows; ++i) std::copy_n(matrix[i], columns, to + i * columns);
    return {.first = to, .stride = columns};
  }

  int64_t columns_;
  int packed_;
  int scratch_;
  Workspace<BFloat16> rows_;
};

}  // namespace skiff
