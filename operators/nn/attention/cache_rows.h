// Where write_to_cache writes.
#pragma once

#include <cstdint>

#include "framework/base/element_count.h"
#include "framework/op/op_context.h"
#include "operators/nn/attention/first_place.h"

namespace skiff {

// Known sizes of the op.
struct CacheRows {
  explicit CacheRows(const OpContext& context) {
    const TensorMeta& cache = context.Input("Cache");
    capacity = cache.shape[1];
    tokens = context.Input("X").shape[1];
    row_bytes = ByteCount(cache.shape.element_count(2, cache.shape.rank()), cache.dtype);
  }

  // Returns the row of the first token, if the token is at `position`.
  constexpr int64_t Clamped(int64_t position) const {
    return ClampedPlace(position, capacity - tokens);
  }

  int64_t capacity = 0;
  int64_t tokens = 0;
  int64_t row_bytes = 0;
};

}  // namespace skiff
