// The rows of ranked sequences, where a ragged tensor has them and where an array of steps does.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/tensor/tensor_array.h"
#include "operators/common/memory_mover.h"
#include "operators/sequence/kernels/rank_table.h"

namespace skiff {

// Sets `runs` to all rows of row_bytes, from the ragged tensor to the array, whose element t has
// row t of each sequence that is longer than t, in ranked order. The array must have them.
inline void ListRowsToSteps(const RankTable& table, const void* ragged, int64_t row_bytes,
                            TensorArray* steps, std::vector<MemoryRun>* runs) {
  runs->clear();
  for (int64_t t = 0; t < table.step_count(); ++t) {
    char* to = static_cast<char*>(steps->At(t).raw_data());
    const int64_t count = table.RowsAt(t);
    for (int64_t rank = 0; rank < count; ++rank, to += row_bytes) {
      const int64_t row = table.rows(rank).begin + t;
      runs->push_back({.from = static_cast<const char*>(ragged) + row * row_bytes,
                       .to = to,
                       .bytes = row_bytes});
    }
  }
}

// Sets `runs` to all rows from the array to the ragged tensor: zeros for an element that isn't
// there.
inline void ListRowsOfSteps(const RankTable& table, const TensorArray& steps, int64_t row_bytes,
                            void* ragged, std::vector<MemoryRun>* runs) {
  runs->clear();
  for (int64_t t = 0; t < table.step_count(); ++t) {
    const Tensor* step = steps.Find(t);
    const auto* from = step == nullptr ? nullptr : static_cast<const char*>(step->raw_data());
    const int64_t count = table.RowsAt(t);
    for (int64_t rank = 0; rank < count; ++rank) {
      const int64_t row = table.rows(rank).begin + t;
      runs->push_back({.from = from == nullptr ? nullptr : from + rank * row_bytes,
                       .to = static_cast<char*>(ragged) + row * row_bytes,
                       .bytes = row_bytes});
    }
  }
}

}  // namespace skiff
