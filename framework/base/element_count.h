// The one place where element counts and byte counts are computed, with overflow checks.
#pragma once

#include <cstdint>
#include <span>

#include "framework/base/dtype.h"

namespace skiff {

// The product of the dims (1 for rank 0). Error for a negative dim and for a product beyond int64.
int64_t ElementCount(std::span<const int64_t> dims);

// elements × SizeOf(dtype). Error beyond int64.
int64_t ByteCount(int64_t elements, DType dtype);

// a × b for counts. Error for a negative factor and for a product beyond int64.
int64_t MultiplyCounts(int64_t a, int64_t b);

// a + b for counts. Error for a sum beyond int64.
int64_t AddCounts(int64_t a, int64_t b);

// The least multiple of `multiple` that is not below `count`.
constexpr int64_t RoundUp(int64_t count, int64_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

}  // namespace skiff
