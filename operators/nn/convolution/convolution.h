// The definitions and kernels of two-dimensional convolutions, shared by conv2d and
// depthwise_conv2d.
#pragma once

#include <string_view>

#include "framework/op/kernel.h"
#include "framework/op/op_def.h"
#include "framework/op/registry.h"

namespace skiff {

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
