// conv2d_transpose, depthwise_conv2d_transpose and conv3d_transpose: the transposes of
// convolutions, which enlarge images or volumes. Each point of Input adds Filter, times its value,
// to a window of Output.
//
//   Output[n, o, p · s + t · d - padding] += Input[n, c, p] · Filter[c, o, t]
//
// over points p, taps t and the channels c of o's group. Output has (size - 1) · s - padding + d ·
// (kernel - 1) + 1 + output_padding points along an axis, or output_size. The op is the gradient of
// the convolution with this Filter with respect to its input. Its own gradients are therefore that
// convolution and the correlation of Output@GRAD with Input.
#pragma once

#include "framework/op/registry.h"
#include "operators/nn/convolution/volume_convolution.h"

namespace skiff {

// Returns the convolution whose input is Output and whose output is Input, by the slots Input and
// Filter and the attributes. Dims of -1 stay unknown. Throws Error for shapes and attributes that
// don't fit.
VolumeConvolution ParseTransposedConvolution(const OpContext& context, VolumeAxes axes);

// Registers the op and <type>_grad, for images or for volumes.
void RegisterTransposedConvolution(OpRegistry& registry, StaticText type, VolumeAxes axes);

}  // namespace skiff
