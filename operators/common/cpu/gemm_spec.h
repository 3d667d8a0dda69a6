// What a general matrix multiplication (gemm.h) computes: sizes, transpositions, factors and batch.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "framework/tensor/shape.h"

namespace skiff {

// One dimension of a batch. Strides count elements. Stride 0 of A or B: every index reads the same
// matrix. Stride 0 of C: the products of all indices are summed into one matrix.
struct GemmBatchDim {
  int64_t size = 1;
  int64_t stride_a = 0;
  int64_t stride_b = 0;
  int64_t stride_c = 0;

  friend bool operator==(const GemmBatchDim&, const GemmBatchDim&) = default;
};

// Outermost first. In an array, since kernels make specs in each run, where they mustn't allocate.
class GemmBatch {
 public:
  GemmBatch() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): it is written like a vector.
  GemmBatch(std::initializer_list<GemmBatchDim> dims);

  bool empty() const { return rank_ == 0; }
  std::span<const GemmBatchDim> dims() const { return {dims_.data(), rank_}; }
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.begin() + rank_; }
  const GemmBatchDim& back() const { return dims_[rank_ - 1]; }
  GemmBatchDim& back() { return dims_[rank_ - 1]; }
  // Throws Error for more dims than a tensor has.
  void push_back(const GemmBatchDim& dim);
  void pop_back() { --rank_; }

  friend bool operator==(const GemmBatch& a, const GemmBatch& b) {
    return std::ranges::equal(a.dims(), b.dims());
  }

 private:
  std::array<GemmBatchDim, Shape::kMaxRank> dims_;
  size_t rank_ = 0;
};

struct GemmSpec {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool trans_a = false;  // A is stored as [k, m]
  bool trans_b = false;  // B is stored as [n, k]
  double alpha = 1;
  // 0 overwrites C, whatever C contains.
  double beta = 0;
  // The distance between stored rows, in elements; 0: rows are contiguous.
  int64_t lda = 0;
  int64_t ldb = 0;
  int64_t ldc = 0;
  // Adds a vector of n numbers to each row of C, after all else. Of one product, not of a batch,
  // with alpha = 1.
  bool adds_bias = false;
  GemmBatch batch;

  friend bool operator==(const GemmSpec&, const GemmSpec&) = default;
};

// Returns the same product with leading dimensions filled in and the smallest batch: dims of size 1
// are dropped, neighbours merged, and a dim is folded into m (one B for all rows) or k (a sum over
// the batch) if the matrices are contiguous. Throws Error for a negative size, a leading dimension
// below the row's length, and a bias for more than one product or with another alpha than 1.
GemmSpec SimplifyGemm(GemmSpec spec);

// Returns whether the product simplifies to one of two matrices, neither of them empty.
bool IsOneProduct(const GemmSpec& spec);

}  // namespace skiff
