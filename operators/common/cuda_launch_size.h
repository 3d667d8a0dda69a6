// The size of a launch and its stream, for host code that knows neither CUDA nor kernels, and for
// .cu files that include little.
#pragma once

#include <cstdint>

namespace skiff {

inline constexpr int kGridThreads = 256;  // per block
inline constexpr int64_t kMaxGridBlocks = 8192;

// Returns how many neighbouring elements of this many bytes a thread takes at once: 16 bytes of
// them, and at most 4.
constexpr int VectorSize(int64_t bytes) { return bytes < 4 ? 4 : static_cast<int>(16 / bytes); }

struct CudaGrid {
  int blocks = 0;
  void* stream = nullptr;
};

}  // namespace skiff
