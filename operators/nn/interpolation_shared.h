// bilinear_interp_v2 and nearest_interp_v2: images of another size.
//
// Pixel (y, x) of the output is the sum of up to four pixels of the input, with weights that are
// the product of one for the rows and one for the columns.
#pragma once

#include <string>

#include "framework/op/registry.h"

namespace skiff {

enum class Interpolation { kNearest, kBilinear };

// Registers an op and its gradient op. The output's size comes from the attributes out_h and out_w
// or scale; sizes that are data (OutSize, SizeTensor, Scale) are not taken.
void RegisterInterpolation(OpRegistry& registry, const std::string& type, Interpolation method);

}  // namespace skiff
