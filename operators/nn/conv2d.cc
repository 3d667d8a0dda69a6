// conv2d: correlation of images with filters.
//
//   Output[n, o, y, x] = sum over c, i, j of
//       Filter[o, c, i, j] · Input[n, g(o) · C / groups + c, y · s + i · d - p, x · s + j · d - p]
//
// Source: Fluid's conv2d (PaddlePaddle 2.6). Kernels: kernels/convolution.cc,
// kernels/convolution_onednn.cc and kernels/convolution_winograd.cc.
#include <utility>

#include "operators/nn/convolution/convolution.h"

namespace skiff {

void RegisterConv2d(OpRegistry& registry) {
  OpDef def = ConvolutionDef(
      "conv2d",
      "Output[n, o, y, x] = sum over channels c of o's group and taps (i, j) of Filter[o, c, i, j] "
      "* Input[n, c, y * stride + i * dilation - padding, x * stride + j * dilation - padding], "
      "where Input is 0 outside.");
  registry.Add(ConvolutionGradDef(&def));
  registry.Add(std::move(def));
  AddPlainConvolution(registry, "conv2d");
  AddOnednnConvolution(registry, "conv2d");
  AddWinogradConvolution(registry, "conv2d");
}

}  // namespace skiff
