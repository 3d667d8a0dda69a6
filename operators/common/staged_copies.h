// How tensors that lie anywhere are copied into one buffer, in few copies.
#pragma once

#include <cstdint>
#include <vector>

namespace skiff {

// Bytes to be copied; `buffer` tells what they are a part of (any address of its own will do).
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
  int64_t bytes = 0;             // that it takes
};

// Tensors of one buffer with at most `largest_gap` bytes between them are one copy, gaps included;
// so parameters that lie flat are. Each copy begins at a multiple of kBufferAlignment.
StagedCopies PlanStagedCopies(const std::vector<StagedTensor>& tensors, int64_t largest_gap);

}  // namespace skiff
