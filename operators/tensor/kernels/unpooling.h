// The places to which unpool puts elements.
#pragma once

#include "framework/tensor/shape.h"
#include "operators/tensor/kernels/along_axis.h"

namespace skiff {

// Returns the pixels that Indices, of shape `indices`, name in the images of shape `out`, both
// [N, C, H, W]: each channel of an image has its own, numbered from 0.
inline AlongAxis UnpooledPlaces(const Shape& out, const Shape& indices) {
  const int64_t channels = indices[0] * indices[1];
  return AlongAxis({channels, out[2] * out[3]}, {channels, indices[2] * indices[3]}, 1);
}

}  // namespace skiff
