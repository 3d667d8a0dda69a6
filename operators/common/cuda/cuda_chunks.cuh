// Kernels over the elements of many arrays, in one launch for any number of them.
//
// The arrays are cut into chunks of one size, none across two arrays. Block b of a kernel takes
// chunks b, b + blocks, …, so the result of an array doesn't depend on the other arrays of the
// list. Within a chunk a thread takes packs of 16 bytes, counted from the start of the array, so
// that not even the order of sums depends on addresses. It loads a pack at once if the array begins
// at a multiple of 16 bytes.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/cuda/cuda_vectors.cuh"
#include "operators/common/half.h"

namespace skiff {

inline constexpr int64_t kCudaChunk = 4096;  // elements

// Returns the number of chunks before each array, and at the end their total.
inline std::vector<int64_t> FirstChunks(const std::vector<int64_t>& counts) {
  std::vector<int64_t> first = {0};
  for (const int64_t count : counts) {
    first.push_back(first.back() + (count + kCudaChunk - 1) / kCudaChunk);
  }
  return first;
}

// FirstChunks on the device.
struct CudaChunks {
  const int64_t* first;
  int64_t array_count;
  int64_t count;
};

// Elements [begin, end) of an array.
struct CudaChunk {
  int64_t array;
  int64_t begin;
  int64_t end;
};

// Returns chunk `chunk` of arrays with count_of(array) elements each.
template <class CountOf>
__device__ CudaChunk ChunkOf(const CudaChunks& chunks, int64_t chunk, const CountOf& count_of) {
  int64_t array = 0;
  int64_t after = chunks.array_count;
  while (after - array > 1) {
    const int64_t middle = (array + after) / 2;
    (chunks.first[middle] <= chunk ? array : after) = middle;
  }
  const int64_t begin = (chunk - chunks.first[array]) * kCudaChunk;
  const int64_t count = count_of(array);
  return {array, begin, begin + kCudaChunk < count ? begin + kCudaChunk : count};
}

template <typename T>
inline constexpr int kPackSize = 16 / sizeof(T);

template <typename T>
struct alignas(16) Pack {
  T values[kPackSize<T>];
};

// Stores a pack in one instruction; nvcc would split an assignment.
__device__ inline void StoreWhole(const Pack<float>& pack, float* to) {
  const float(&values)[4] = pack.values;
  __stwb(reinterpret_cast<float4*>(to), make_float4(values[0], values[1], values[2], values[3]));
}

__device__ inline void StoreWhole(const Pack<double>& pack, double* to) {
  __stwb(reinterpret_cast<double2*>(to), make_double2(pack.values[0], pack.values[1]));
}

inline bool IsPackAligned(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % 16 == 0;
}

// Loads the first `count` elements of a pack. kIsWhole: all of them, at a multiple of 16 bytes.
template <bool kIsWhole, typename T>
__device__ Pack<T> LoadPack(const T* from, int count) {
  if constexpr (kIsWhole) return *reinterpret_cast<const Pack<T>*>(from);
  Pack<T> pack{};
#pragma unroll
  for (int j = 0; j < kPackSize<T>; ++j) {
    if (j < count) pack.values[j] = from[j];
  }
  return pack;
}

template <bool kIsWhole, typename T>
__device__ void StorePack(const Pack<T>& pack, int count, T* to) {
  if constexpr (kIsWhole) {
    StoreWhole(pack, to);
  } else {
#pragma unroll
    for (int j = 0; j < kPackSize<T>; ++j) {
      if (j < count) to[j] = pack.values[j];
    }
  }
}

// Returns whether whole packs of two-byte numbers, which are 8 bytes, may begin at this address.
inline bool IsHalfPackAligned(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % 8 == 0;
}

__device__ inline float FloatOfHalf(uint16_t bits, bool is_float16) {
  Float16 float16;
  BFloat16 bfloat16;
  float16.bits = bfloat16.bits = bits;
  return is_float16 ? Widened(float16) : Widened(bfloat16);
}

__device__ inline uint16_t HalfOfFloat(float value, bool is_float16) {
  return is_float16 ? Rounded<Float16>(value).bits : Rounded<BFloat16>(value).bits;
}

// LoadPack for float16 or bfloat16; returns floats.
template <bool kIsWhole>
__device__ Pack<float> LoadHalves(const uint16_t* from, bool is_float16, int count) {
  Pack<float> pack{};
  if constexpr (kIsWhole) {
    const uint2 words = *reinterpret_cast<const uint2*>(from);
    pack.values[0] = FloatOfHalf(static_cast<uint16_t>(words.x), is_float16);
    pack.values[1] = FloatOfHalf(static_cast<uint16_t>(words.x >> 16), is_float16);
    pack.values[2] = FloatOfHalf(static_cast<uint16_t>(words.y), is_float16);
    pack.values[3] = FloatOfHalf(static_cast<uint16_t>(words.y >> 16), is_float16);
  } else {
#pragma unroll
    for (int j = 0; j < kPackSize<float>; ++j) {
      if (j < count) pack.values[j] = FloatOfHalf(from[j], is_float16);
    }
  }
  return pack;
}

// StorePack that rounds floats to float16 or bfloat16.
template <bool kIsWhole>
__device__ void StoreHalves(const Pack<float>& pack, bool is_float16, int count, uint16_t* to) {
  uint16_t halves[kPackSize<float>];
#pragma unroll
  for (int j = 0; j < kPackSize<float>; ++j) halves[j] = HalfOfFloat(pack.values[j], is_float16);
  if constexpr (kIsWhole) {
    __stwb(reinterpret_cast<uint2*>(to), make_uint2(halves[0] | uint32_t{halves[1]} << 16,
                                                    halves[2] | uint32_t{halves[3]} << 16));
  } else {
#pragma unroll
    for (int j = 0; j < kPackSize<float>; ++j) {
      if (j < count) to[j] = halves[j];
    }
  }
}

// Calls body.template operator()<kIsWhole>(i, count) for each of the thread's packs, which starts
// at element i and has `count` elements. is_aligned: the arrays begin at multiples of 16 bytes.
template <typename T, class Body>
__device__ void ForEachPack(const CudaChunk& chunk, bool is_aligned, const Body& body) {
  constexpr int64_t kStride = int64_t{kCudaThreads} * kPackSize<T>;
  for (int64_t i = chunk.begin + threadIdx.x * kPackSize<T>; i < chunk.end; i += kStride) {
    const int64_t rest = chunk.end - i;
    if (is_aligned && rest >= kPackSize<T>) {
      body.template operator()<true>(i, kPackSize<T>);
    } else {
      body.template operator()<false>(i,
                                      rest < kPackSize<T> ? static_cast<int>(rest) : kPackSize<T>);
    }
  }
}

// Copies a chunk to the array of the next values, unless both arrays are the same memory.
template <typename T>
__device__ void KeepChunk(const T* from, const CudaChunk& chunk, T* to) {
  if (from == to) return;
  for (int64_t i = chunk.begin + threadIdx.x; i < chunk.end; i += kCudaThreads) to[i] = from[i];
}

}  // namespace skiff
