// Two-dimensional convolution, which conv2d and depthwise_conv2d have in common.
#pragma once

#include <string>

#include "framework/op/op_def.h"
#include "framework/op/registry.h"
#include "operators/nn/image_window_shared.h"

namespace skiff {

// Everything about one convolution, shapes known.
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
  bool is_empty() const { return input.is_empty() || output.is_empty() || filter_elements() == 0; }
};

// From the slots Input and Filter and the attributes, of the op or of its gradient op. Dims of -1
// stay unknown. Error for what doesn't fit.
Convolution ParseConvolution(const OpContext& context);

// The definitions of a convolution and of its gradient op, <type>_grad.
OpDef ConvolutionDef(const std::string& type, const std::string& doc);
OpDef ConvolutionGradDef(const std::string& type);

// "plain" kernels: direct loops in float32 and float64, every attribute.
void AddPlainConvolution(OpRegistry& registry, const std::string& type);
// "onednn" kernels: float32, plain or blocked by 8 or 16.
void AddOnednnConvolution(OpRegistry& registry, const std::string& type);
// "winograd" kernels: float32, 3x3 of stride 1, blocked by the lanes of a vector.
void AddWinogradConvolution(OpRegistry& registry, const std::string& type);

}  // namespace skiff
