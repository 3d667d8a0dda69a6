// The kernel of the gradient of a convolution, or of a transposed convolution, with the passes of
// ColumnConvolution.
#pragma once

#include <memory>

#include "framework/op/kernel.h"
#include "operators/nn/convolution/column_convolution.h"

namespace skiff {

// Returns the kernel from Input, Filter and Output@GRAD to Input@GRAD and Filter@GRAD, either of
// which may be absent. `to_input` is the pass that computes Input@GRAD from Output@GRAD and Filter:
// kBackwardData for a convolution; kForward for a transposed convolution, where `convolution` maps
// Output to Input. T is float or double; every dim must be known.
template <typename T>
std::unique_ptr<Kernel> PrepareConvolutionGrad(PrepareContext& context,
                                               const VolumeConvolution& convolution,
                                               ConvolutionPass to_input);

extern template std::unique_ptr<Kernel> PrepareConvolutionGrad<float>(PrepareContext&,
                                                                      const VolumeConvolution&,
                                                                      ConvolutionPass);
extern template std::unique_ptr<Kernel> PrepareConvolutionGrad<double>(PrepareContext&,
                                                                       const VolumeConvolution&,
                                                                       ConvolutionPass);

}  // namespace skiff
