// What kernels ask about a sorted list of row numbers.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "operators/common/cuda/cuda_row_sort.h"

namespace skiff {

// Returns whether place k of the list is the first of a row.
__device__ inline bool IsFirstOfRow(const SortedRows& sorted, int64_t k) {
  const uint32_t row = sorted.rows[k];
  return row < sorted.length && (k == 0 || sorted.rows[k - 1] != row);
}

}  // namespace skiff
