// The geometry of convolutions of volumes, and of images as volumes of depth 1.
#pragma once

#include <cstdint>

#include "framework/op/math_mode.h"
#include "framework/op/op_context.h"
#include "operators/nn/convolution/convolution_geometry.h"
#include "operators/nn/kernels/volume_window.h"

namespace skiff {

// A convolution with known shapes. The filter is [output channels, input channels / groups, depth,
// height, width].
struct VolumeConvolution {
  VolumeDims input;
  VolumeDims output;
  int64_t groups = 1;
  VolumeWindow window;
  ChannelOrder order = ChannelOrder::kFirst;
  MathMode math = MathMode::kFull;  // on a device (PrepareContext::math)

  int64_t group_inputs() const { return input.channels / groups; }
  int64_t group_outputs() const { return output.channels / groups; }
  // The number of rows of a group's matrix of columns.
  int64_t group_rows() const { return group_inputs() * window.taps(); }
  int64_t filter_elements() const { return output.channels * group_rows(); }
  // Each element of the output is a sum over a group's rows. See OpDef::flop.
  double flop() const {
    return 2.0 * static_cast<double>(output.count()) * static_cast<double>(group_rows());
  }
};

enum class ConvolutionPass { kForward, kBackwardData, kBackwardFilter };

// Returns a convolution of images as one of volumes.
VolumeConvolution VolumeConvolutionOf(const Convolution& convolution);
// Returns the convolution of conv3d or its gradient op, by the slots Input and Filter and the
// attributes. Dims of -1 stay unknown. Throws Error for shapes and attributes that don't fit.
VolumeConvolution ParseVolumeConvolution(const OpContext& context);

}  // namespace skiff
