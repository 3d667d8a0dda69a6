// What kernels that move bytes share. They move words as large as addresses and sizes allow, one
// per thread at a time, and find out by division where a word belongs.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <type_traits>

#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/fast_divisor.h"

namespace skiff {

// Has the interface of FastDivisor for numbers of 64 bits, and divides by an instruction.
class WideDivisor {
 public:
  WideDivisor() = default;  // by 1
  explicit WideDivisor(int64_t divisor) : divisor_(static_cast<uint64_t>(divisor)) {}

  // Sets the number to the quotient and returns the remainder.
  __device__ uint64_t TakeRemainder(uint64_t* number) const {
    const uint64_t quotient = *number / divisor_;
    const uint64_t remainder = *number - quotient * divisor_;
    *number = quotient;
    return remainder;
  }

 private:
  uint64_t divisor_ = 1;
};

// Divides indices of a type that VisitIndexType chooses.
template <typename Index>
using Divisor = std::conditional_t<std::is_same_v<Index, uint32_t>, FastDivisor, WideDivisor>;

// Calls function.template operator()<Index>() with the type in which `count` words, and the steps
// of a grid beyond them, are counted.
template <typename Function>
void VisitIndexType(int64_t count, const Function& function) {
  constexpr int64_t kStep = kMaxCudaBlocks * kCudaThreads;
  if (count <= std::numeric_limits<int32_t>::max() - kStep) {
    function.template operator()<uint32_t>();
  } else {
    function.template operator()<uint64_t>();
  }
}

// Returns the size of the largest words, at most 16 bytes, of which all of these numbers of bytes
// (or addresses) are multiples.
inline int WordBytes(std::initializer_list<int64_t> multiples) {
  uint64_t bits = 16;
  for (const int64_t multiple : multiples) bits |= static_cast<uint64_t>(multiple);
  return static_cast<int>(bits & (~bits + 1));
}

inline int64_t AddressOf(const void* data) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(data));
}

// Calls function.template operator()<Word>() for an element of 1, 2, 4 or 8 bytes.
template <typename Function>
void VisitElementWord(int64_t bytes, const Function& function) {
  switch (bytes) {
    case 1:
      return function.template operator()<uint8_t>();
    case 2:
      return function.template operator()<uint16_t>();
    case 4:
      return function.template operator()<uint32_t>();
    default:
      return function.template operator()<uint64_t>();
  }
}

// The same for words of 1, 2, 4, 8 or 16 bytes.
template <typename Function>
void VisitWord(int64_t bytes, const Function& function) {
  if (bytes == int64_t{sizeof(uint4)}) return function.template operator()<uint4>();
  VisitElementWord(bytes, function);
}

}  // namespace skiff
