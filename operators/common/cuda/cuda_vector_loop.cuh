// The loop of kernels that treat each element by itself: each thread takes vectors of neighbouring
// elements (cuda_vectors.cuh), a grid apart, since the number of blocks is limited (GridOf) and the
// number of elements isn't.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "operators/common/cuda/cuda_vectors.cuh"

namespace skiff {

// Calls body(i, count, is_whole) for each of the thread's vectors, which starts at element i and
// has `count` elements. is_aligned: all arrays begin at multiples of 16 bytes. is_whole: count is
// kSize and the vector is aligned.
template <int kSize, class Body>
__device__ void ForEachVector(int64_t count, bool is_aligned, const Body& body) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x * kSize;
  const int64_t first = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kSize;
  for (int64_t i = first; i < count; i += stride) {
    const int length = count - i < kSize ? static_cast<int>(count - i) : kSize;
    body(i, length, is_aligned && length == kSize);
  }
}

}  // namespace skiff
