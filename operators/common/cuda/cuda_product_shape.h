// Which product of matrices a device computes.
#pragma once

#include <compare>
#include <cstdint>

#include "framework/op/math_mode.h"

namespace skiff {

struct CudaProductShape {
  bool transpose_a = false;  // A is stored as [k, m]
  bool transpose_b = false;  // B is stored as [n, k]
  int64_t m = 0;             // C is m x n
  int64_t n = 0;
  int64_t k = 0;
  // Elements from row to row of A, B and C as stored; 0: rows are contiguous.
  int64_t lda = 0;
  int64_t ldb = 0;
  int64_t ldc = 0;
  int64_t batches = 1;
  // Elements between the matrices of a batch. 0 of A or B: all read the same one.
  int64_t stride_a = 0;
  int64_t stride_b = 0;
  int64_t stride_c = 0;
  // Adds a vector of n numbers to each row of C, after all else. Of one product, not of a batch.
  bool adds_bias = false;
  MathMode math = MathMode::kFull;  // of float32, by cuBLAS; the kernel of our own ignores it

  friend auto operator<=>(const CudaProductShape&, const CudaProductShape&) = default;
};

}  // namespace skiff
