// The size of a launch and its stream, for host code that knows neither CUDA nor kernels, and for
// .cu files that include little; cuda_launch.h has more.
#pragma once

#include <cstdint>

namespace skiff {

inline constexpr int kCudaThreads = 256;  // per block
// The most blocks of most launches. No result depends on it.
inline constexpr int64_t kMaxCudaBlocks = 4096;
// The most blocks of a launch that passes over elements once: GridOf, LaunchTiles. No result
// depends on it.
inline constexpr int64_t kMaxElementBlocks = 8192;

// Returns the number of blocks for `count` parts of work. Each block takes the parts that are a
// grid apart.
constexpr int CudaBlocks(int64_t count, int64_t most = kMaxCudaBlocks) {
  return static_cast<int>(count < most ? count : most);
}

// The same for one part per thread.
constexpr int CudaBlocksOfThreads(int64_t count, int64_t most = kMaxCudaBlocks) {
  return CudaBlocks((count + kCudaThreads - 1) / kCudaThreads, most);
}

// Returns how many neighbouring elements of `bytes` bytes each a thread takes at once: as many as
// have 16 bytes, but only 4 elements of one byte.
constexpr int VectorSize(int64_t bytes) { return bytes == 1 ? 4 : static_cast<int>(16 / bytes); }

struct CudaGrid {
  int blocks = 0;
  void* stream = nullptr;
};

}  // namespace skiff
