// depthwise_conv2d: a convolution with a group for each input channel.
//
//   Output[n, o, y, x] = sum over i, j of
//       Filter[o, 0, i, j] · Input[n, o / multiplier, y · s + i · d - p, x · s + j · d - p]
//
// Source: Fluid's depthwise_conv2d (PaddlePaddle 2.6), a conv2d by another name: groups is its
// attribute too. Kernels: kernels/convolution.cc and kernels/convolution_onednn.cc.
#include <utility>

#include "operators/nn/convolution/convolution.h"

namespace skiff {

void RegisterDepthwiseConv2d(OpRegistry& registry) {
  OpDef def = ConvolutionDef(
      "depthwise_conv2d",
      "conv2d with groups = number of input channels: output channel o is the correlation of input "
      "channel o / (output channels / input channels) with Filter[o, 0].");
  registry.Add(ConvolutionGradDef(&def));
  registry.Add(std::move(def));
  AddPlainConvolution(registry, "depthwise_conv2d");
  AddOnednnConvolution(registry, "depthwise_conv2d");
}

}  // namespace skiff
