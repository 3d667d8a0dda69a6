// A few neighbouring elements, which a thread loads and stores at once, and the check of a launch.
// Kernels on half (half.h) load and store half and compute in float. Includes little, so that small
// .cu files compile fast.
#pragma once

#include <cuda_runtime.h>

#include <bit>
#include <cstdint>
#include <type_traits>

#include "operators/common/cuda/cuda_launch_size.h"
#include "operators/common/half.h"

namespace skiff {

// ---- half in kernels: float, by the device's instructions where there are any. Their bits are
// those of half.h, except for NaN. The least architecture of a release, sm_80, has the
// instructions.

// Returns a number as kernels compute with it.
template <typename T>
__device__ WideType<T> Widened(T x) {
#ifdef __CUDA_ARCH__
  if constexpr (std::is_same_v<T, Float16>) {
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
    return wide;
  } else
#endif
  {
    return static_cast<WideType<T>>(x);
  }
}

// Rounds a number to T, in which it is stored.
template <typename T>
__device__ T Rounded(WideType<T> x) {
#ifdef __CUDA_ARCH__
  if constexpr (kIsHalf<T>) {
    T rounded;
    if constexpr (std::is_same_v<T, Float16>) {
      asm("cvt.rn.f16.f32 %0, %1;" : "=h"(rounded.bits) : "f"(x));
    } else {
      asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded.bits) : "f"(x));
    }
    return rounded;
  } else
#endif
  {
    return static_cast<T>(x);
  }
}

// ---- vectors

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

// The bytes that a single instruction loads. nvcc would split an assignment of structs.
template <size_t kBytes>
using Word = std::conditional_t<
    kBytes >= 16, uint4,
    std::conditional_t<kBytes == 8, uint2,
                       std::conditional_t<kBytes == 4, uint32_t,
                                          std::conditional_t<kBytes == 2, uint16_t, uint8_t>>>>;

// A vector as it is loaded: one word, or several of 16 bytes.
template <class Vector>
struct Words {
  using Word = cuda_vectors::Word<sizeof(Vector)>;
  static constexpr int kCount = sizeof(Vector) / sizeof(Word);
  Word words[kCount];
};

}  // namespace cuda_vectors

// Load and store the first `count` elements of a vector. is_whole: all of them, at an address that
// is a multiple of their size or of 16 bytes.
template <int kCount, typename T>
__device__ CudaVector<T, kCount> LoadVector(const T* from, int count, bool is_whole) {
  using Vector = CudaVector<T, kCount>;
  if (is_whole) {
    using Words = cuda_vectors::Words<Vector>;
    Words loaded;
#pragma unroll
    for (int k = 0; k < Words::kCount; ++k) {
      loaded.words[k] = reinterpret_cast<const typename Words::Word*>(from)[k];
    }
    return std::bit_cast<Vector>(loaded);
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
    using Words = cuda_vectors::Words<CudaVector<T, kCount>>;
    const auto words = std::bit_cast<Words>(vector);
#pragma unroll
    for (int k = 0; k < Words::kCount; ++k) {
      reinterpret_cast<typename Words::Word*>(to)[k] = words.words[k];
    }
    return;
  }
#pragma unroll
  for (int j = 0; j < kCount; ++j) {
    if (j < count) to[j] = vector.values[j];
  }
}

// The same of numbers as kernels compute with them: half becomes float, and float is rounded to it.
template <int kCount, typename T>
__device__ CudaVector<WideType<T>, kCount> LoadWide(const T* from, int count, bool is_whole) {
  const CudaVector<T, kCount> stored = LoadVector<kCount>(from, count, is_whole);
  if constexpr (kIsHalf<T>) {
    CudaVector<WideType<T>, kCount> wide;
#pragma unroll
    for (int j = 0; j < kCount; ++j) wide.values[j] = Widened(stored.values[j]);
    return wide;
  } else {
    return stored;
  }
}

template <int kCount, typename T>
__device__ void StoreRounded(const CudaVector<WideType<T>, kCount>& vector, int count,
                             bool is_whole, T* to) {
  if constexpr (kIsHalf<T>) {
    CudaVector<T, kCount> rounded;
#pragma unroll
    for (int j = 0; j < kCount; ++j) rounded.values[j] = Rounded<T>(vector.values[j]);
    StoreVector(rounded, count, is_whole, to);
  } else {
    StoreVector(vector, count, is_whole, to);
  }
}

// Returns what has failed of the launches since the last call, nullptr if nothing has.
inline const char* LaunchFailure() {
  const cudaError_t status = cudaGetLastError();
  return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}

}  // namespace skiff
