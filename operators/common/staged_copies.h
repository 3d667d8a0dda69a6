// Plans how to copy scattered tensors into one buffer with few copies.
#pragma once

#include <cstdint>
#include <vector>

namespace skiff {

// Bytes to copy. `buffer` identifies the buffer that they are part of, by any address unique to it.
struct StagedTensor {
  const char* from = nullptr;
  int64_t bytes = 0;
  const void* buffer = nullptr;
};

struct StagedCopies {
  struct Copy {
    const char* from = nullptr;
    int64_t bytes = 0;
    int64_t to = 0;  // in the staging buffer
  };
  std::vector<Copy> copies;
  std::vector<int64_t> offsets;  // of each tensor in the staging buffer
  int64_t bytes = 0;             // size of the staging buffer
};

// Returns the copies. Tensors of a buffer with gaps of at most `largest_gap` bytes share a copy,
// gaps included; flat parameters do. Each copy begins at a multiple of kBufferAlignment.
StagedCopies PlanStagedCopies(const std::vector<StagedTensor>& tensors, int64_t largest_gap);

}  // namespace skiff
