// A batch of matrix products as the loops that compute it.
#pragma once

#include <cstdint>
#include <ranges>

#include "operators/common/cpu/gemm_spec.h"

namespace skiff {

// Elements from the first matrices of a batch.
struct GemmOffsets {
  int64_t a = 0;
  int64_t b = 0;
  int64_t c = 0;
};

// Returns where the matrices of batch index `index` start.
inline GemmOffsets BatchOffsets(const GemmBatch& batch, int64_t index) {
  GemmOffsets offsets;
  for (const GemmBatchDim& dim : std::ranges::reverse_view(batch.dims())) {
    const int64_t i = index % dim.size;
    index /= dim.size;
    offsets.a += i * dim.stride_a;
    offsets.b += i * dim.stride_b;
    offsets.c += i * dim.stride_c;
  }
  return offsets;
}

inline int64_t BatchCount(const GemmBatch& batch) {
  int64_t count = 1;
  for (const GemmBatchDim& dim : batch) count *= dim.size;
  return count;
}

// A simplified product, with the batch dims that have separate results, and the batch dims whose
// products are summed.
struct PlannedGemm {
  explicit PlannedGemm(const GemmSpec& simple) : spec(simple) {
    for (const GemmBatchDim& dim : spec.batch) {
      (dim.stride_c == 0 ? summed : kept).push_back(dim);
    }
    kept_count = BatchCount(kept);
    summed_count = BatchCount(summed);
  }

  bool is_empty() const { return spec.m == 0 || spec.n == 0 || kept_count == 0; }
  bool has_terms() const { return spec.k > 0 && summed_count > 0; }

  GemmSpec spec;
  GemmBatch kept;
  GemmBatch summed;
  int64_t kept_count = 1;
  int64_t summed_count = 1;
};

}  // namespace skiff
