// bilinear_interp_v2 and nearest_interp_v2, which resize images, and version 1 of them.
//
// Pixel (y, x) of the output is a weighted sum of up to four pixels of the input. Each weight is
// the product of a weight of the row and one of the column.
#pragma once

#include <string_view>

#include "framework/op/registry.h"
#include "operators/nn/interpolation/interpolation_op.h"

namespace skiff {

// Registers an op and its gradient op. The attribute out_size, else scale, else out_h and out_w
// give the output's size.
void RegisterInterpolation(OpRegistry& registry, StaticText type, const InterpolationOp& op);
// Adds the kernels for CUDA.
void AddCudaInterpolation(OpRegistry& registry, std::string_view type, const InterpolationOp& op);

}  // namespace skiff
