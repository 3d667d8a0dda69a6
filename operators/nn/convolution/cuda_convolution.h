// CUDA kernels of convolutions and transposed convolutions, of images and volumes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_long_sum.h"
#include "operators/nn/convolution/volume_convolution.h"

namespace skiff {

using ParseConvolutionFunction = std::function<VolumeConvolution(const OpContext&)>;

// Add kernels to a convolution and to its gradient op, <type>_grad; to a transposed convolution,
// whose `parse` returns the convolution from Output to Input, and its gradient op.
void AddCudaConvolution(OpRegistry& registry, std::string_view type,
                        const ParseConvolutionFunction& parse);
void AddCudaTransposedConvolution(OpRegistry& registry, std::string_view type,
                                  const ParseConvolutionFunction& parse);

// One prepared pass on a device. T is float, double or half; only cuDNN has passes of half.
template <typename T>
class CudaConvolutionPass {
 public:
  virtual ~CudaConvolutionPass() = default;
  // Of the workspace that Run needs.
  virtual int64_t workspace_bytes() const = 0;
  // Gives the pass to the run's stream. kForward: from input and filter to output. kBackwardData:
  // from the output's gradient and filter to the input's gradient. kBackwardFilter: from the
  // output's gradient and input to the filter's gradient. kForward may add to what `result` holds.
  virtual void Run(const KernelContext& run, const T* first, const T* second, T* result,
                   void* workspace, bool adds = false) const = 0;
};

// Returns whether the kernels' 32-bit counts suffice for the convolution.
bool CudaCountsConvolution(const VolumeConvolution& conv);

// Returns the convolution as the kernel computes it: in the mode of the context.
inline VolumeConvolution InMathOf(const PrepareContext& context, VolumeConvolution conv) {
  conv.math = context.math();
  return conv;
}

// Returns a pass, by direct loops or matrix products.
template <typename T>
std::unique_ptr<CudaConvolutionPass<T>> MakeCudaConvolutionPass(const VolumeConvolution& conv,
                                                                ConvolutionPass pass);

extern template std::unique_ptr<CudaConvolutionPass<float>> MakeCudaConvolutionPass(
    const VolumeConvolution&, ConvolutionPass);
extern template std::unique_ptr<CudaConvolutionPass<double>> MakeCudaConvolutionPass(
    const VolumeConvolution&, ConvolutionPass);

// Returns whether this machine's cuDNN has the pass in float32 or half and is a good choice for it.
bool CudnnSupports(const VolumeConvolution& conv, ConvolutionPass pass,
                   DType dtype = DType::kFloat32);
// Returns the pass by cuDNN or, in float32, forward and to the input, for filters of one tap that
// take the images as they are, by matrix products. Throws Error unless it is supported. T is float
// or half.
template <typename T>
std::unique_ptr<CudaConvolutionPass<T>> MakeCudnnPass(const VolumeConvolution& conv,
                                                      ConvolutionPass pass);

extern template std::unique_ptr<CudaConvolutionPass<float>> MakeCudnnPass(const VolumeConvolution&,
                                                                          ConvolutionPass);

// Channels last: returns how many sums, each over as many images, the filter's gradient has in a
// part of the batch, where there is memory for `most` of them.
inline int64_t CudaFilterSums(const VolumeConvolution& conv, int64_t images, int64_t points,
                              int64_t most) {
  const int64_t wanted =
      WorthwhileSumParts(conv.output.channels, conv.group_rows(), images * points);
  return NearestDivisor(images, std::min(wanted, images), most);
}

// The memory for a pass's columns; parts of the batch that need more are taken one after the other.
// Only tests change it, before kernels are prepared.
inline int64_t& CudaColumnBytes() {
  // Enough for several of the largest images of ResNet at once, whose products fill a device.
  static int64_t bytes = int64_t{64} << 20;
  return bytes;
}

}  // namespace skiff
