// The gradients of a block of elements of a range.
#pragma once

#include <cstdint>

#include "operators/common/half_arrays.h"
#include "operators/optimizer/kernels/update_range.h"

namespace skiff {

// Returns the gradients of elements [begin, end) of `range` before range.gradient is applied. Uses
// `buffer`, which has room for the gradients, for zeros and for gradients of two bytes; `halves`
// converts the latter. T is float or double.
template <typename T>
const T* GradientOf(const UpdateRange<T>& range, const HalfArrays& halves, int64_t begin,
                    int64_t end, T* buffer);

// Returns the same with range.gradient applied.
template <typename T>
const T* FormedGradientOf(const UpdateRange<T>& range, const HalfArrays& halves, int64_t begin,
                          int64_t end, T* buffer);

}  // namespace skiff
