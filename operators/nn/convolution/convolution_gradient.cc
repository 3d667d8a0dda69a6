#include "operators/nn/convolution/convolution_gradient.h"

#include <optional>
#include <utility>

#include "framework/op/arguments.h"

namespace skiff {

template <typename T>
std::unique_ptr<Kernel> PrepareConvolutionGrad(PrepareContext& context,
                                               const VolumeConvolution& convolution,
                                               ConvolutionPass to_input) {
  const In<T> input(context, "Input");
  const In<T> filter(context, "Filter");
  const In<T> gradient(context, "Output@GRAD");
  const Out<T> input_gradient(context, "Input@GRAD");
  const Out<T> filter_gradient(context, "Filter@GRAD");
  const bool is_transposed = to_input == ConvolutionPass::kForward;
  std::optional<ColumnConvolution<T>> input_pass;
  std::optional<ColumnConvolution<T>> filter_pass;
  // Each pass requests its own workspace, so an absent gradient costs neither time nor memory.
  if (input_gradient.is_there()) input_pass.emplace(convolution, to_input, context);
  if (filter_gradient.is_there()) {
    filter_pass.emplace(convolution, ConvolutionPass::kBackwardFilter, context);
  }
  return MakeKernel([=, input_pass = std::move(input_pass),
                     filter_pass = std::move(filter_pass)](const KernelContext& run) {
    const T* from = gradient(run);
    if (input_pass) {
      const T* weights = filter(run);
      T* to = input_gradient(run);
      if (is_transposed) {
        input_pass->Forward(run, from, weights, to);
      } else {
        input_pass->BackwardData(run, from, weights, to);
      }
    }
    if (filter_pass) {
      // In a transposed convolution, Input takes the part of the output's gradient.
      const T* x = input(run);
      filter_pass->BackwardFilter(run, is_transposed ? x : from, is_transposed ? from : x,
                                  filter_gradient(run));
    }
  });
}

template std::unique_ptr<Kernel> PrepareConvolutionGrad<float>(PrepareContext&,
                                                               const VolumeConvolution&,
                                                               ConvolutionPass);
template std::unique_ptr<Kernel> PrepareConvolutionGrad<double>(PrepareContext&,
                                                                const VolumeConvolution&,
                                                                ConvolutionPass);

}  // namespace skiff
