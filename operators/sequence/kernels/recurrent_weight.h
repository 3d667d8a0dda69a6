// Common parts of the kernels of recurrent layers on the CPU: weights that are packed when they
// change.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "framework/op/arguments.h"
#include "operators/common/cpu/bf16_product.h"
#include "operators/common/cpu/packed_product.h"
#include "operators/common/half.h"

namespace skiff {

// A row-major matrix among the numbers of an input.
struct WeightPart {
  int64_t offset = 0;  // of its first element
  int64_t rows = 0;
  int64_t columns = 0;
};

// T is float, double or BFloat16.
template <typename T>
class RecurrentWeight {
 public:
  // Products are with the matrix or, if `is_transposed`, with its transpose.
  RecurrentWeight(PrepareContext& context, const In<T>& input, const WeightPart& part,
                  bool is_transposed)
      : product_(is_transposed ? part.columns : part.rows,
                 is_transposed ? part.rows : part.columns) {
    const int64_t row_stride = is_transposed ? 1 : part.columns;
    const int64_t column_stride = is_transposed ? part.columns : 1;
    packed_ = context.RequestDerivedForm(
        {.inputs = {input.index()},
         .bytes = product_.bytes(),
         .refresh = [=, product = product_](const KernelContext& run, void* packed) {
           product.Pack(input(run) + part.offset, row_stride, column_stride,
                        static_cast<T*>(packed));
         }});
  }

  // c = a * weight, or c += a * weight, for `rows` rows of a, which may be a_stride apart. Of half,
  // they must be a stride apart.
  void Multiply(const KernelContext& run, const MatrixRows<T>& a, int64_t rows, bool add,
                WideType<T>* c, int64_t c_stride) const {
    const void* packed = run.derived(packed_);
    if constexpr (kIsHalf<T>) {
      const Bf16Result<float> result = {.c = c, .stride = c_stride, .beta = add ? 1.0f : 0.0f};
      product_.Multiply({.first = a.first, .stride = a.stride}, rows, packed, nullptr, result);
    } else {
      product_.Multiply(a, rows, static_cast<const T*>(packed), add, c, c_stride);
    }
  }
  void Multiply(const KernelContext& run, const T* a, int64_t rows, int64_t a_stride, bool add,
                WideType<T>* c, int64_t c_stride) const {
    Multiply(run, {.first = a, .stride = a_stride}, rows, add, c, c_stride);
  }

 private:
  std::conditional_t<kIsHalf<T>, Bf16Product, PackedProduct<T>> product_;
  int packed_ = -1;
};

// Returns the rows of so many numbers whose activations are worth a thread.
inline int64_t RecurrentGrain(int64_t numbers) {
  return std::max<int64_t>(1, 4096 / std::max<int64_t>(1, numbers));
}

}  // namespace skiff
