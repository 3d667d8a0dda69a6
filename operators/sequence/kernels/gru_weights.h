// The weights of a gated recurrent unit. An input [H, 3H] holds two matrices, one after the other:
// [H, 2H] for u and r, then [H, H] for c.
#pragma once

#include "framework/op/kernel.h"
#include "operators/sequence/kernels/recurrent_weight.h"
#include "operators/sequence/kernels/weight_sum.h"

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
        gates_(context, size, 2 * size, rows, 3 * size),
        candidate_(context, size, size, rows, 3 * size) {}

  // Takes the state before each row and its reset state, [rows, H], and the gradient of g,
  // [rows, 3H]. There may be fewer rows than it was prepared for.
  void Run(const KernelContext& run, int64_t rows, const T* before, const T* reset,
           const T* gates_gradient, T* weight_gradient) const {
    gates_.Run(run, rows, before, gates_gradient, weight_gradient);
    candidate_.Run(run, rows, reset, gates_gradient + 2 * size_,
                   weight_gradient + 2 * size_ * size_);
  }

 private:
  int64_t size_;
  WeightSum<T> gates_;
  WeightSum<T> candidate_;
};

}  // namespace skiff
