// The weights of a gated recurrent unit. An input [H, 3H] holds two matrices, one after the other:
// [H, 2H] for u and r, then [H, H] for c.
#pragma once

#include "framework/op/kernel.h"
#include "operators/common/cpu/gemm.h"
#include "operators/sequence/kernels/recurrent_weight.h"

namespace skiff {

template <typename T>
struct GruWeights {
  GruWeights(PrepareContext& context, int64_t size, bool is_transposed)
      : gates(context, {context, "Weight"}, {0, size, 2 * size}, is_transposed),
        candidate(context, {context, "Weight"}, {2 * size * size, size, size}, is_transposed) {}

  RecurrentWeight<T> gates;
  RecurrentWeight<T> candidate;
};

// The gradient of the weights, from all rows.
template <typename T>
class GruWeightGradient {
 public:
  GruWeightGradient(PrepareContext& context, int64_t size, int64_t rows)
      : size_(size),
        gates_(Product(2 * size, rows), context),
        candidate_(Product(size, rows), context) {}

  // Takes the state before each row and its reset state, [rows, H], and the gradient of g,
  // [rows, 3H]. There may be fewer rows than it was prepared for.
  void Run(const KernelContext& run, int64_t rows, const T* before, const T* reset,
           const T* gates_gradient, T* weight_gradient) const {
    gates_.Run(run, Product(2 * size_, rows), before, gates_gradient, weight_gradient);
    candidate_.Run(run, Product(size_, rows), reset, gates_gradient + 2 * size_,
                   weight_gradient + 2 * size_ * size_);
  }

 private:
  GemmSpec Product(int64_t columns, int64_t rows) const {
    return {.m = size_, .n = columns, .k = rows, .trans_a = true, .ldb = 3 * size_};
  }

  int64_t size_;
  Gemm<T> gates_;
  Gemm<T> candidate_;
};

}  // namespace skiff
