// Two-dimensional convolution, shared by conv2d and depthwise_conv2d.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "framework/op/kernel.h"
#include "framework/op/op_def.h"
#include "framework/op/registry.h"
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

// Returns the definition of a convolution without a gradient rule.
OpDef ConvolutionDef(StaticText type, StaticText doc);
// Gives a convolution its gradient rule, and returns the definition of its gradient op,
// <type>_grad.
OpDef ConvolutionGradDef(OpDef* forward);

// The functions below add kernels to `type`, with an epilogue if the definition has one
// (convolution_epilogue.h), and to the gradient op, <type>_grad, if there is one.
//
// "plain": direct loops in float32 and float64, for every attribute.
void AddPlainConvolution(OpRegistry& registry, std::string_view type);
// "onednn": float32, for images that are plain or blocked by 8 or 16. The same in bfloat16 is
// kNativeHalfKernel, where oneDNN uses the processor's instructions for the convolution.
void AddOnednnConvolution(OpRegistry& registry, std::string_view type);
// "winograd": float32 and bfloat16, 3x3 of stride 1, for images blocked by the lanes of a vector.
void AddWinogradConvolution(OpRegistry& registry, std::string_view type);

// Adds a kernel to the op `type`, and another one to the gradient op of `type`, if there is a
// gradient op. The factories `forward` and `backward` prepare the kernels. `candidate` has all
// fields of both kernels but the factory.
void AddConvolutionKernels(OpRegistry& registry, std::string_view type, KernelDef candidate,
                           KernelFactory forward, KernelFactory backward);

}  // namespace skiff
