// The geometry of two-dimensional convolutions: their shapes and windows.
#pragma once

#include <cstdint>

#include "framework/op/op_context.h"
#include "operators/nn/kernels/image_window.h"

namespace skiff {

// A convolution with known shapes.
struct Convolution {
  ImageDims input;
  ImageDims output;
  int64_t groups = 1;
  Window window;
  ChannelOrder order = ChannelOrder::kFirst;

  int64_t group_inputs() const { return input.channels / groups; }
  int64_t group_outputs() const { return output.channels / groups; }
  int64_t filter_elements() const {
    return output.channels * group_inputs() * window.kernel[0] * window.kernel[1];
  }
  // Each element of the filter is used at each point of the output. See OpDef::flop.
  double flop() const {
    return 2.0 * static_cast<double>(output.batch) * static_cast<double>(filter_elements()) *
           static_cast<double>(output.size[0] * output.size[1]);
  }
  bool is_empty() const { return input.is_empty() || output.is_empty() || filter_elements() == 0; }
};

// Returns the convolution of an op or of its gradient op, by the slots Input and Filter and the
// attributes. Dims of -1 stay unknown. Throws Error for shapes and attributes that don't fit.
Convolution ParseConvolution(const OpContext& context);

}  // namespace skiff
