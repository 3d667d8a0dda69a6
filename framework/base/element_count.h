// Overflow-checked arithmetic on element counts and byte counts. All code that sizes memory uses
// it.
#pragma once

#include <cstdint>
#include <span>

#include "framework/base/dtype.h"

namespace skiff {

// The largest number of elements of a tensor, far beyond the memory of any machine. A dim of 0
// counts as 1, so [2^61, 0] is too large as well. Everything that makes a tensor or computes a
// shape enforces this limit. A kernel may therefore multiply any dims of one tensor: the product is
// at most 2^48, and stays within 63 bits if multiplied by the bytes of an element and by up to
// 2^11. A product of dims of different tensors needs MultiplyCounts.
inline constexpr int64_t kMaxElementCount = int64_t{1} << 48;

// Throws Error if the product of the positive dims is above kMaxElementCount. Dims of 0 and unknown
// dims (-1) count as 1.
void CheckElementLimit(std::span<const int64_t> dims);

// Returns the product of the dims, 1 for rank 0. Throws Error if a dim is negative, and the Error
// of CheckElementLimit.
int64_t ElementCount(std::span<const int64_t> dims);

// Returns elements × SizeOf(dtype). Throws Error on overflow.
int64_t ByteCount(int64_t elements, DType dtype);

// Returns a × b. Throws Error if a factor is negative or on overflow.
int64_t MultiplyCounts(int64_t a, int64_t b);

// Returns a + b. Throws Error on overflow.
int64_t AddCounts(int64_t a, int64_t b);

// Returns the smallest multiple of `multiple` that is at least `count`.
constexpr int64_t RoundUp(int64_t count, int64_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

}  // namespace skiff
