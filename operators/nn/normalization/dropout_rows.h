// A bias, dropout and a residual of a row, and the gradients, for ops that do more with the row
// while it is in the cache. T is float (vectorised) or double.
#pragma once

#include <cstdint>

#include "framework/tensor/philox.h"

namespace skiff {

// What dropout does with the elements of a tensor: see operators/common/dropout_settings.h.
struct ElementDropout {
  bool draws = false;      // drops element i if word i of the key's stream is below `threshold`
  bool drops_all = false;  // drops each
  RandomKey key = {};
  uint32_t threshold = 0;
  double scale = 1;  // multiplies what is kept
};

template <typename T>
struct RowTerms {
  const T* x = nullptr;
  const T* bias = nullptr;      // 0 if nullptr
  const T* residual = nullptr;  // 0 if nullptr
  int64_t first = 0;            // the index of the row's first element in its tensor
  int64_t count = 0;
};

// Sets sum = residual + dropout(x + bias), and mask[i] to 1 for an element that is kept, else to 0,
// unless `mask` is nullptr. `sum` may be x or the residual.
template <typename T>
void AddDroppedRow(const RowTerms<T>& terms, const ElementDropout& dropout, T* sum, uint8_t* mask);

// Sets dx[i] = mask[i] ? ds[i] * scale : 0 and adds it to bias_sums[i]. Every element counts as
// kept if `mask` is nullptr. dx and bias_sums may be nullptr; dx may be ds.
template <typename T>
void DropGradientRow(const uint8_t* mask, T scale, const T* ds, int64_t count, T* dx, T* bias_sums);

}  // namespace skiff
