// Two-dimensional convolution, which conv2d and depthwise_conv2d have in common.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "framework/op/kernel.h"
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
  // Each element of the filter is used at each point of the output; see OpDef::flop.
  double flop() const {
    return 2.0 * static_cast<double>(output.batch) * static_cast<double>(filter_elements()) *
           static_cast<double>(output.size[0] * output.size[1]);
  }
  bool is_empty() const { return input.is_empty() || output.is_empty() || filter_elements() == 0; }
};

// From the slots Input and Filter and the attributes, of the op or of its gradient op. Dims of -1
// stay unknown. Error for what doesn't fit.
Convolution ParseConvolution(const OpContext& context);

// The definitions of a convolution and of its gradient op, <type>_grad.
OpDef ConvolutionDef(const std::string& type, const std::string& doc);
OpDef ConvolutionGradDef(const std::string& type);

// The kernels below are those of `type`, with an epilogue if its definition has one
// (convolution_epilogue_shared.h), and those of its gradient op, <type>_grad, if there is one.
//
// "plain": direct loops in float32 and float64, every attribute.
void AddPlainConvolution(OpRegistry& registry, const std::string& type);
// "onednn": float32, plain or blocked by 8 or 16.
void AddOnednnConvolution(OpRegistry& registry, const std::string& type);
// "winograd": float32, 3x3 of stride 1, blocked by the lanes of a vector.
void AddWinogradConvolution(OpRegistry& registry, const std::string& type);

// Adds float32 kernels to `type` and, if it is there, to its gradient op; `candidate` says which.
template <typename Forward, typename Backward>
void AddConvolutionKernels(OpRegistry& registry, const std::string& type, KernelDef candidate) {
  candidate.dtype = DType::kFloat32;
  candidate.prepare = [](PrepareContext& context) -> std::unique_ptr<Kernel> {
    return std::make_unique<Forward>(context);
  };
  registry.AddKernel(type, candidate);
  if (registry.Find(type + "_grad") == nullptr) return;
  candidate.prepare = [](PrepareContext& context) -> std::unique_ptr<Kernel> {
    return std::make_unique<Backward>(context);
  };
  registry.AddKernel(type + "_grad", candidate);
}

}  // namespace skiff
