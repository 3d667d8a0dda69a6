// The gradient of a weight, for one pair of matrices: a sum over the rows of all time steps.
#pragma once

#include <cstdint>

#include "framework/op/kernel.h"
#include "operators/common/cpu/gemm.h"
#include "operators/sequence/kernels/rows_product.h"

namespace skiff {

// C = A^T · B, where A is [rows, m], B [rows, n] with rows `ldb` apart, and C [m, n]. Each run may
// have another number of rows.
template <typename T>
class WeightSum {
 public:
  WeightSum(PrepareContext& context, int64_t m, int64_t n, int64_t max_rows, int64_t ldb)
      : m_(m), n_(n), ldb_(ldb), product_(Spec(max_rows), context) {}

  void Run(const KernelContext& run, int64_t rows, const T* a, const T* b, T* c) const {
    product_.Run(run, Spec(rows), a, b, c);
  }

 private:
  GemmSpec Spec(int64_t rows) const {
    return {.m = m_, .n = n_, .k = rows, .trans_a = true, .ldb = ldb_};
  }

  int64_t m_;
  int64_t n_;
  int64_t ldb_;
  Gemm<T> product_;
};

}  // namespace skiff
