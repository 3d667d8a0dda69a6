// bilinear_interp_v2 and nearest_interp_v2, which resize images, and version 1 of them.
//
// Pixel (y, x) of the output is a weighted sum of up to four pixels of the input. Each weight is
// the product of a weight of the row and one of the column.
#pragma once

#include <string_view>

#include "framework/op/registry.h"

namespace skiff {

enum class Interpolation { kNearest, kBilinear };

// In version 1, `scale` is one number, and gives nothing but the size of the output: distances in
// the input are always by the sizes of both.
enum class InterpolationVersion { kFirst = 1, kSecond = 2 };

// What differs between the ops.
struct InterpolationOp {
  Interpolation method = Interpolation::kNearest;
  InterpolationVersion version = InterpolationVersion::kSecond;
};

// Registers an op and its gradient op. The attribute out_size, else scale, else out_h and out_w
// give the output's size.
void RegisterInterpolation(OpRegistry& registry, StaticText type, const InterpolationOp& op);
// Adds the kernels for CUDA.
void AddCudaInterpolation(OpRegistry& registry, std::string_view type, const InterpolationOp& op);

}  // namespace skiff
