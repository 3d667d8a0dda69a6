// A few neighbouring elements, which a thread loads and stores at once, and the check of a launch.
// Includes little, so that small .cu files compile fast.
#pragma once

#include <cuda_runtime.h>

#include <bit>
#include <cstdint>
#include <type_traits>

#include "operators/common/cuda/cuda_launch_size.h"

namespace skiff {

template <typename T, int kCount>
struct alignas(sizeof(T) * kCount) CudaVector {
  T values[kCount];
};

template <typename T>
inline constexpr int kVectorSize = VectorSize(sizeof(T));

inline bool IsAlignedTo(const void* address, size_t bytes) {
  return reinterpret_cast<uintptr_t>(address) % bytes == 0;
}

namespace cuda_vectors {

// What one instruction loads. nvcc would split an assignment of structs.
template <size_t kBytes>
using Word = std::conditional_t<
    kBytes == 16, uint4,
    std::conditional_t<kBytes == 8, uint2,
                       std::conditional_t<kBytes == 4, uint32_t,
                                          std::conditional_t<kBytes == 2, uint16_t, uint8_t>>>>;

}  // namespace cuda_vectors

// Load and store the first `count` elements of a vector. is_whole: all of them, at an address that
// is a multiple of their size.
template <int kCount, typename T>
__device__ CudaVector<T, kCount> LoadVector(const T* from, int count, bool is_whole) {
  using Vector = CudaVector<T, kCount>;
  if (is_whole) {
    using Word = cuda_vectors::Word<sizeof(Vector)>;
    return std::bit_cast<Vector>(*reinterpret_cast<const Word*>(from));
  }
  Vector vector{};
#pragma unroll
  for (int j = 0; j < kCount; ++j) {
    if (j < count) vector.values[j] = from[j];
  }
  return vector;
}

template <int kCount, typename T>
__device__ void StoreVector(const CudaVector<T, kCount>& vector, int count, bool is_whole, T* to) {
  if (is_whole) {
    using Word = cuda_vectors::Word<sizeof(vector)>;
    *reinterpret_cast<Word*>(to) = std::bit_cast<Word>(vector);
    return;
  }
#pragma unroll
  for (int j = 0; j < kCount; ++j) {
    if (j < count) to[j] = vector.values[j];
  }
}

// Returns what has failed of the launches since the last call, nullptr if nothing has.
inline const char* LaunchFailure() {
  const cudaError_t status = cudaGetLastError();
  return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}

}  // namespace skiff
