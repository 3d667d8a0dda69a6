// Conversions of arrays of half from and to float.
#pragma once

#include <cstdint>

#include "framework/base/dtype.h"

namespace skiff {

// Conversions of arrays of either type, given as bits. They use vectors and give the same bits as
// the conversions above. They run on the calling thread.
struct HalfArrays {
  void (*to_floats)(const uint16_t* halves, int64_t count, float* floats) = nullptr;
  void (*from_floats)(const float* floats, int64_t count, uint16_t* halves) = nullptr;
};

// Returns the conversions for a dtype. Throws Error unless IsHalf(dtype).
HalfArrays HalfArraysOf(DType dtype);

}  // namespace skiff
