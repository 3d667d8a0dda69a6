// bilinear_interp_v2 and nearest_interp_v2, which resize images.
//
// Pixel (y, x) of the output is a weighted sum of up to four pixels of the input. Each weight is
// the product of a weight of the row and one of the column.
#pragma once

#include <string_view>

#include "framework/op/registry.h"

namespace skiff {

enum class Interpolation { kNearest, kBilinear };

// Registers an op and its gradient op. The attributes out_h and out_w, or scale, give the output's
// size.
void RegisterInterpolation(OpRegistry& registry, StaticText type, Interpolation method);
// Adds the kernels for CUDA.
void AddCudaInterpolation(OpRegistry& registry, std::string_view type, Interpolation method);

}  // namespace skiff
