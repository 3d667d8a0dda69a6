// CUDA kernels of conv2d and of all other convolutions and transposed convolutions.
#include <cuda_runtime.h>

#include <memory>
#include <utility>

#include "framework/base/element_count.h"
#include "operators/nn/kernels/cuda_column_convolution.cuh"
#include "operators/nn/kernels/cuda_direct_convolution.cuh"

namespace skiff {
namespace {

// A pass of a convolution of which some tensor has no elements: the sums are of nothing.
template <typename T>
class EmptyConvolution final : public CudaConvolutionPass<T> {
 public:
  explicit EmptyConvolution(int64_t results) : results_(results) {}
  int64_t workspace_bytes() const override { return 0; }
  void Run(void* stream, const T*, const T*, T* result, void*, bool adds) const override {
    if (adds || results_ == 0) return;
    const cudaError_t status = cudaMemsetAsync(result, 0, static_cast<size_t>(results_) * sizeof(T),
                                               static_cast<cudaStream_t>(stream));
    SKIFF_ENFORCE(status == cudaSuccess, kIo,
                  "convolution: cudaMemsetAsync: ", cudaGetErrorString(status));
  }

 private:
  int64_t results_;
};

// Returns the number of elements that a pass computes.
int64_t ResultsOf(const VolumeConvolution& conv, ConvolutionPass pass) {
  switch (pass) {
    case ConvolutionPass::kForward:
      return conv.output.count();
    case ConvolutionPass::kBackwardData:
      return conv.input.count();
    case ConvolutionPass::kBackwardFilter:
      return conv.filter_elements();
  }
  return 0;
}

template <typename T>
class ForwardKernel final : public Kernel {
 public:
  ForwardKernel(PrepareContext& context, std::unique_ptr<CudaConvolutionPass<T>> pass)
      : input_(context.InputIndex("Input")),
        filter_(context.InputIndex("Filter")),
        output_(context.OutputIndex("Output")),
        pass_(std::move(pass)),
        workspace_(context.RequestWorkspace(pass_->workspace_bytes())) {}

  void Run(const KernelContext& run) override {
    pass_->Run(run.device().stream, run.input(input_).data<T>(), run.input(filter_).data<T>(),
               run.output(output_).data<T>(), run.workspace(workspace_));
  }

 private:
  int input_;
  int filter_;
  int output_;
  std::unique_ptr<CudaConvolutionPass<T>> pass_;
  int workspace_;
};

// The gradients of Input and Filter, either of which may be absent. In a transposed convolution,
// Input takes the part of the output's gradient.
template <typename T>
class GradKernel final : public Kernel {
 public:
  template <typename MakePass>
  GradKernel(PrepareContext& context, bool is_transposed, const MakePass& make)
      : is_transposed_(is_transposed),
        input_(context.InputIndex("Input")),
        filter_(context.InputIndex("Filter")),
        output_gradient_(context.InputIndex("Output@GRAD")),
        input_gradient_(context.OutputIndex("Input@GRAD")),
        filter_gradient_(context.OutputIndex("Filter@GRAD")) {
    int64_t bytes = 0;
    if (input_gradient_ >= 0) {
      to_input_ = make(is_transposed ? ConvolutionPass::kForward : ConvolutionPass::kBackwardData);
      bytes = to_input_->workspace_bytes();
    }
    if (filter_gradient_ >= 0) {
      to_filter_ = make(ConvolutionPass::kBackwardFilter);
      bytes = std::max(bytes, to_filter_->workspace_bytes());
    }
    // One pass runs after the other.
    workspace_ = context.RequestWorkspace(bytes);
  }

  void Run(const KernelContext& run) override {
    const T* gradient = run.input(output_gradient_).data<T>();
    if (to_input_ != nullptr) {
      to_input_->Run(run.device().stream, gradient, run.input(filter_).data<T>(),
                     run.output(input_gradient_).data<T>(), run.workspace(workspace_));
    }
    if (to_filter_ != nullptr) {
      const T* input = run.input(input_).data<T>();
      to_filter_->Run(run.device().stream, is_transposed_ ? input : gradient,
                      is_transposed_ ? gradient : input, run.output(filter_gradient_).data<T>(),
                      run.workspace(workspace_));
    }
  }

 private:
  bool is_transposed_;
  int input_;
  int filter_;
  int output_gradient_;
  int input_gradient_;
  int filter_gradient_;
  std::unique_ptr<CudaConvolutionPass<T>> to_input_;
  std::unique_ptr<CudaConvolutionPass<T>> to_filter_;
  int workspace_ = -1;
};

template <typename T>
void AddKernels(OpRegistry& registry, const std::string& type,
                const ParseConvolutionFunction& parse, bool is_transposed) {
  const auto accepts = [parse](const OpContext& context) {
    return AllPlain(context) && CudaCountsConvolution(parse(context));
  };
  const auto prepare = [parse, is_transposed](PrepareContext& context) -> std::unique_ptr<Kernel> {
    const auto pass = is_transposed ? ConvolutionPass::kBackwardData : ConvolutionPass::kForward;
    return std::make_unique<ForwardKernel<T>>(context,
                                              MakeCudaConvolutionPass<T>(parse(context), pass));
  };
  const auto prepare_grad = [parse,
                             is_transposed](PrepareContext& context) -> std::unique_ptr<Kernel> {
    return std::make_unique<GradKernel<T>>(context, is_transposed,
                                           [conv = parse(context)](ConvolutionPass pass) {
                                             return MakeCudaConvolutionPass<T>(conv, pass);
                                           });
  };
  registry.AddKernel(type, {.name = "cuda",
                            .place = PlaceKind::kCuda,
                            .dtype = kDTypeOf<T>,
                            .prepare = prepare,
                            .accepts = accepts});
  registry.AddKernel(type + "_grad", {.name = "cuda",
                                      .place = PlaceKind::kCuda,
                                      .dtype = kDTypeOf<T>,
                                      .prepare = prepare_grad,
                                      .accepts = accepts});
}

}  // namespace

template <typename T>
std::unique_ptr<CudaConvolutionPass<T>> MakeCudaConvolutionPass(const VolumeConvolution& conv,
                                                                ConvolutionPass pass) {
  if (conv.input.count() == 0 || conv.output.count() == 0 || conv.filter_elements() == 0) {
    return std::make_unique<EmptyConvolution<T>>(ResultsOf(conv, pass));
  }
  if (ConvolvesDirectly(conv)) return std::make_unique<CudaDirectConvolution<T>>(conv, pass);
  return std::make_unique<CudaColumnConvolution<T>>(conv, pass);
}

void AddCudaConvolution(OpRegistry& registry, const std::string& type,
                        const ParseConvolutionFunction& parse) {
  AddKernels<float>(registry, type, parse, /*is_transposed=*/false);
  AddKernels<double>(registry, type, parse, /*is_transposed=*/false);
}

void AddCudaTransposedConvolution(OpRegistry& registry, const std::string& type,
                                  const ParseConvolutionFunction& parse) {
  AddKernels<float>(registry, type, parse, /*is_transposed=*/true);
  AddKernels<double>(registry, type, parse, /*is_transposed=*/true);
}

void RegisterConv2dCuda(OpRegistry& registry) {
  AddCudaConvolution(registry, "conv2d", [](const OpContext& context) {
    return VolumeConvolutionOf(ParseConvolution(context));
  });
}

}  // namespace skiff
