// The numbers under a tap of a sliding window: the rows of a convolution's columns (im2col).
#pragma once

#include <algorithm>
#include <cstdint>

#include "operators/nn/convolution/volume_convolution.h"

namespace skiff {

// Calls visit(offset from point `begin`, offset in the channel, points, step in the channel) for
// the parts of the output's points [begin, end) at which a tap is on the input. There is at least
// one point. `in` are the strides of the input.
template <typename Visit>
void VisitTap(const VolumeConvolution& conv, const VolumeStrides& in, int64_t tap, int64_t begin,
              int64_t end, const Visit& visit) {
  const VolumeWindow& window = conv.window;
  const VolumeExtents& outputs = conv.output.size;
  const VolumeExtents& inputs = conv.input.size;
  // The tap's place in the kernel, and from it the offset of the input point that output point 0
  // sees.
  const VolumeExtents at = {tap / (window.kernel[1] * window.kernel[2]),
                            tap / window.kernel[2] % window.kernel[1], tap % window.kernel[2]};
  VolumeExtents offset;
  for (size_t axis = 0; axis < 3; ++axis) {
    offset[axis] = at[axis] * window.dilation[axis] - window.pad_begin[axis];
  }
  // Along the width, the points on the input are one range for all rows. [begin, end) may begin and
  // end within a row.
  const IndexRange columns = ValidOutputs(outputs[2], inputs[2], window.stride[2], offset[2]);
  const int64_t last_row = (end - 1) / outputs[2];
  for (int64_t row = begin / outputs[2]; row <= last_row; ++row) {
    const int64_t z = row / outputs[1] * window.stride[0] + offset[0];
    const int64_t y = row % outputs[1] * window.stride[1] + offset[1];
    if (z < 0 || z >= inputs[0] || y < 0 || y >= inputs[1]) continue;
    const int64_t row_begin = row * outputs[2];
    const int64_t first = std::max(columns.begin, begin - row_begin);
    const int64_t last = std::min(columns.end, end - row_begin);
    if (first >= last) continue;
    const int64_t x = first * window.stride[2] + offset[2];
    visit(row_begin + first - begin, z * in.size[0] + y * in.size[1] + x * in.size[2], last - first,
          window.stride[2] * in.size[2]);
  }
}

}  // namespace skiff
