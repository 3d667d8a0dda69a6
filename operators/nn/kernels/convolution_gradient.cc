#include "operators/nn/kernels/convolution_gradient.h"

#include <optional>
#include <utility>

namespace skiff {

template <typename T>
std::unique_ptr<Kernel> PrepareConvolutionGrad(PrepareContext& context,
                                               const VolumeConvolution& convolution,
                                               ConvolutionPass to_input) {
  const int input = context.InputIndex("Input");
  const int filter = context.InputIndex("Filter");
  const int gradient = context.InputIndex("Output@GRAD");
  const int input_gradient = context.OutputIndex("Input@GRAD");
  const int filter_gradient = context.OutputIndex("Filter@GRAD");
  const bool is_transposed = to_input == ConvolutionPass::kForward;
  std::optional<ColumnConvolution<T>> input_pass;
  std::optional<ColumnConvolution<T>> filter_pass;
  // Each pass requests its own workspace, so an absent gradient costs neither time nor memory.
  if (input_gradient >= 0) input_pass.emplace(convolution, to_input, context);
  if (filter_gradient >= 0) {
    filter_pass.emplace(convolution, ConvolutionPass::kBackwardFilter, context);
  }
  return MakeKernel([=, input_pass = std::move(input_pass),
                     filter_pass = std::move(filter_pass)](const KernelContext& run) {
    const T* from = run.input(gradient).data<T>();
    if (input_pass) {
      const T* weights = run.input(filter).data<T>();
      T* to = run.output(input_gradient).data<T>();
      if (is_transposed) {
        input_pass->Forward(run, from, weights, to);
      } else {
        input_pass->BackwardData(run, from, weights, to);
      }
    }
    if (filter_pass) {
      // In a transposed convolution, Input takes the part of the output's gradient.
      const T* x = run.input(input).data<T>();
      filter_pass->BackwardFilter(run, is_transposed ? x : from, is_transposed ? from : x,
                                  run.output(filter_gradient).data<T>());
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
