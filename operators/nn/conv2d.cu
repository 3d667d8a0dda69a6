// CUDA kernels of conv2d and of all other convolutions and transposed convolutions.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "framework/base/str_cat.h"
#include "framework/op/arguments.h"
#include "memory/cuda_device.h"
#include "operators/common/cuda/cuda_bytes.h"
#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/half.h"
#include "operators/common/libraries/cudnn_convolution.h"
#include "operators/nn/convolution/cuda_column_convolution.cuh"
#include "operators/nn/convolution/cuda_direct_convolution.cuh"

namespace skiff {
namespace {

// A pass of a convolution of which some tensor has no elements: the sums are of nothing.
template <typename T>
class EmptyConvolution final : public CudaConvolutionPass<T> {
 public:
  explicit EmptyConvolution(int64_t results) : results_(results) {}
  int64_t workspace_bytes() const override { return 0; }
  void Run(const KernelContext& run, const T*, const T*, T* result, void*,
           bool adds) const override {
    if (!adds) FillBytesOnDevice(run, result, 0, results_ * int64_t{sizeof(T)});
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
std::unique_ptr<Kernel> PrepareCudaConvolution(PrepareContext& context,
                                               std::unique_ptr<CudaConvolutionPass<T>> pass) {
  const In<T> input(context, "Input");
  const In<T> filter(context, "Filter");
  const Out<T> output(context, "Output");
  const int workspace = context.RequestWorkspace(pass->workspace_bytes());
  return MakeKernel([=, pass = std::move(pass)](const KernelContext& run) {
    pass->Run(run, input(run), filter(run), output(run), run.workspace(workspace));
  });
}

// Returns a kernel that computes the gradients of Input and Filter. The op may lack either
// gradient. In a transposed convolution, Input takes the part of the output's gradient.
template <typename T, typename MakePass>
std::unique_ptr<Kernel> PrepareCudaConvolutionGrad(PrepareContext& context, bool is_transposed,
                                                   const MakePass& make) {
  const In<T> input(context, "Input");
  const In<T> filter(context, "Filter");
  const In<T> output_gradient(context, "Output@GRAD");
  const Out<T> input_gradient(context, "Input@GRAD");
  const Out<T> filter_gradient(context, "Filter@GRAD");
  std::unique_ptr<CudaConvolutionPass<T>> to_input;
  std::unique_ptr<CudaConvolutionPass<T>> to_filter;
  int64_t bytes = 0;
  if (input_gradient.is_there()) {
    to_input = make(is_transposed ? ConvolutionPass::kForward : ConvolutionPass::kBackwardData);
    bytes = to_input->workspace_bytes();
  }
  if (filter_gradient.is_there()) {
    to_filter = make(ConvolutionPass::kBackwardFilter);
    bytes = std::max(bytes, to_filter->workspace_bytes());
  }
  // One pass runs after the other.
  const int workspace = context.RequestWorkspace(bytes);
  return MakeKernel([=, to_input = std::move(to_input),
                     to_filter = std::move(to_filter)](const KernelContext& run) {
    const T* gradient = output_gradient(run);
    if (to_input != nullptr) {
      to_input->Run(run, gradient, filter(run), input_gradient(run), run.workspace(workspace));
    }
    if (to_filter != nullptr) {
      to_filter->Run(run, is_transposed ? input(run) : gradient,
                     is_transposed ? gradient : input(run), filter_gradient(run),
                     run.workspace(workspace));
    }
  });
}

// Adds a candidate, whose passes are what make(convolution, pass) returns. `candidate` has its
// name, priority and accepts.
template <typename T>
void AddConvolutionKernels(OpRegistry& registry, std::string_view type,
                           const ParseConvolutionFunction& parse, bool is_transposed,
                           KernelDef candidate,
                           std::unique_ptr<CudaConvolutionPass<T>> (*make)(const VolumeConvolution&,
                                                                           ConvolutionPass)) {
  candidate.place = PlaceKind::kCuda;
  candidate.dtype = kDTypeOf<T>;
  candidate.prepare = [=](PrepareContext& context) {
    const auto pass = is_transposed ? ConvolutionPass::kBackwardData : ConvolutionPass::kForward;
    return PrepareCudaConvolution<T>(context, make(InMathOf(context, parse(context)), pass));
  };
  registry.AddKernel(type, candidate);
  candidate.prepare = [=](PrepareContext& context) {
    return PrepareCudaConvolutionGrad<T>(context, is_transposed,
                                         [make, conv = InMathOf(context, parse(context))](
                                             ConvolutionPass pass) { return make(conv, pass); });
  };
  registry.AddKernel(StrCat(type, "_grad"), candidate);
}

// ---- "cudnn"

// Returns the numbers of a convolution for cuDNN, or nothing if it can't take them: channels last,
// or paddings that differ before and after. For filters that our direct loops take, the library is
// slow.
std::optional<CudnnConvolutionSpec> CudnnSpecOf(const VolumeConvolution& conv, ConvolutionPass pass,
                                                DType dtype) {
  const int64_t filter_elements = conv.filter_elements();
  if (conv.input.count() == 0 || conv.output.count() == 0 || filter_elements == 0) return {};
  if (conv.order != ChannelOrder::kFirst || ConvolvesDirectly(conv)) return {};
  if (std::max({conv.input.count(), conv.output.count(), filter_elements}) > kMaxCudaElements) {
    return {};
  }
  const VolumeWindow& window = conv.window;
  for (size_t axis = 0; axis < 3; ++axis) {
    const int64_t padded = conv.input.size[axis] + 2 * window.pad_begin[axis];
    const int64_t room = padded - window.reach(axis);
    if (room < 0 || room / window.stride[axis] + 1 != conv.output.size[axis]) return {};
    if (padded > kMaxCudaElements) return {};
  }
  CudnnConvolutionSpec spec;
  spec.dtype = dtype;
  switch (pass) {
    case ConvolutionPass::kForward:
      spec.pass = CudnnPass::kForward;
      break;
    case ConvolutionPass::kBackwardData:
      spec.pass = CudnnPass::kBackwardData;
      break;
    case ConvolutionPass::kBackwardFilter:
      spec.pass = CudnnPass::kBackwardFilter;
      break;
  }
  // A depth of 1 is no axis.
  const bool is_image =
      conv.input.size[0] == 1 && window.kernel[0] == 1 && window.pad_begin[0] == 0;
  const size_t first = is_image ? 1 : 0;
  spec.axes = is_image ? 2 : 3;
  spec.groups = static_cast<int32_t>(conv.groups);
  spec.math = IsHalf(dtype) ? MathMode::kFull : conv.math;
  const auto set_dims = [first](int64_t outer, int64_t inner, const VolumeExtents& size,
                                std::array<int32_t, 5>* dims) {
    (*dims)[0] = static_cast<int32_t>(outer);
    (*dims)[1] = static_cast<int32_t>(inner);
    for (size_t axis = first; axis < 3; ++axis) {
      (*dims)[2 + axis - first] = static_cast<int32_t>(size[axis]);
    }
  };
  set_dims(conv.input.batch, conv.input.channels, conv.input.size, &spec.input);
  set_dims(conv.output.batch, conv.output.channels, conv.output.size, &spec.output);
  set_dims(conv.output.channels, conv.group_inputs(), window.kernel, &spec.filter);
  for (size_t axis = first; axis < 3; ++axis) {
    spec.padding[axis - first] = static_cast<int32_t>(window.pad_begin[axis]);
    spec.stride[axis - first] = static_cast<int32_t>(window.stride[axis]);
    spec.dilation[axis - first] = static_cast<int32_t>(window.dilation[axis]);
  }
  return spec;
}

template <typename T>
class CudnnConvolutionPass final : public CudaConvolutionPass<T> {
 public:
  explicit CudnnConvolutionPass(const CudnnConvolutionSpec& spec)
      : convolution_(CudnnConvolution::Make(spec)) {}
  int64_t workspace_bytes() const override { return convolution_->workspace_bytes(); }
  void Run(const KernelContext& run, const T* first, const T* second, T* result, void* workspace,
           bool adds) const override {
    convolution_->Run(StreamOf(run), first, second, result, workspace, adds);
  }

 private:
  std::unique_ptr<CudnnConvolution> convolution_;
};

// Those of half add in another order than the float32 kernel.
template <typename T>
void AddCudnnKernels(OpRegistry& registry, std::string_view type,
                     const ParseConvolutionFunction& parse, bool is_transposed) {
  const auto accepts = [parse, is_transposed](const OpContext& context) {
    if (!AllPlain(context)) return false;
    const VolumeConvolution conv = parse(context);
    const auto forward = is_transposed ? ConvolutionPass::kBackwardData : ConvolutionPass::kForward;
    const auto back = is_transposed ? ConvolutionPass::kForward : ConvolutionPass::kBackwardData;
    const auto supports = [&conv](ConvolutionPass pass) {
      return CudnnSupports(conv, pass, kDTypeOf<T>);
    };
    if (context.def().FindInput("Output@GRAD") == nullptr) return supports(forward);
    return (!context.HasOutput("Input@GRAD") || supports(back)) &&
           (!context.HasOutput("Filter@GRAD") || supports(ConvolutionPass::kBackwardFilter));
  };
  const StaticText name = kIsHalf<T> ? kNativeHalfKernel : StaticText("cudnn");
  AddConvolutionKernels<T>(registry, type, parse, is_transposed,
                           {.name = name, .accepts = accepts, .priority = 10}, MakeCudnnPass<T>);
}

// ---- all candidates

void AddAllKernels(OpRegistry& registry, std::string_view type,
                   const ParseConvolutionFunction& parse, bool is_transposed) {
  const KernelDef candidate{.name = "cuda", .accepts = [parse](const OpContext& context) {
                              return AllPlain(context) && CudaCountsConvolution(parse(context));
                            }};
  AddConvolutionKernels<float>(registry, type, parse, is_transposed, candidate,
                               MakeCudaConvolutionPass<float>);
  AddConvolutionKernels<double>(registry, type, parse, is_transposed, candidate,
                                MakeCudaConvolutionPass<double>);
  if (!HasCudaDevice()) return;
  AddCudnnKernels<float>(registry, type, parse, is_transposed);
  AddCudnnKernels<BFloat16>(registry, type, parse, is_transposed);
  AddCudnnKernels<Float16>(registry, type, parse, is_transposed);
}

}  // namespace

bool CudaCountsConvolution(const VolumeConvolution& conv) {
  const VolumeDims& in = conv.input;
  const VolumeDims& out = conv.output;
  const bool is_empty = in.count() == 0 || out.count() == 0;
  if (is_empty) return true;
  for (size_t axis = 0; axis < 3; ++axis) {
    const int64_t windows =
        (out.size[axis] - 1) * conv.window.stride[axis] + conv.window.reach(axis);
    const int64_t padded = in.size[axis] + conv.window.pad_begin[axis];
    if (std::max(windows, padded) > kMaxCudaElements) return false;
  }
  return in.channels * in.points() <= kMaxCudaElements &&
         out.channels * out.points() <= kMaxCudaElements &&
         conv.filter_elements() <= kMaxCudaElements &&
         in.channels * conv.window.taps() <= kMaxCudaElements;
}

bool CudnnSupports(const VolumeConvolution& conv, ConvolutionPass pass, DType dtype) {
  const std::optional<CudnnConvolutionSpec> spec = CudnnSpecOf(conv, pass, dtype);
  return spec && CudnnConvolution::Supports(*spec);
}

template <typename T>
std::unique_ptr<CudaConvolutionPass<T>> MakeCudnnPass(const VolumeConvolution& conv,
                                                      ConvolutionPass pass) {
  std::optional<CudnnConvolutionSpec> spec = CudnnSpecOf(conv, pass, kDTypeOf<T>);
  SKIFF_ENFORCE(spec, kUnimplemented, "convolution: not one that cuDNN takes");
  // A kernel is accepted if the library has the convolution in full float32. It may lack one in
  // TF32.
  if (!CudnnConvolution::Supports(*spec)) spec->math = MathMode::kFull;
  // One matrix product for each image, if that isn't almost a vector. In ResNet-50, whose images
  // have 49 points and more, this and Winograd's algorithm for 3x3 filters take conv2d from 17.6 to
  // 13.0 ms of a step of batch 64 on an H100, and conv2d_grad from 64.7 to 49.0.
  constexpr int64_t kFewestPoints = 49;
  if constexpr (!kIsHalf<T>) {
    if (pass != ConvolutionPass::kBackwardFilter && conv.groups == 1 &&
        conv.output.points() >= kFewestPoints && CudaColumnConvolution<T>::IsOwnColumns(conv)) {
      auto products = std::make_unique<CudaColumnConvolution<T>>(conv, pass);
      if (products->is_by_cublas()) return products;
    }
  }
  return std::make_unique<CudnnConvolutionPass<T>>(*spec);
}

template std::unique_ptr<CudaConvolutionPass<float>> MakeCudnnPass(const VolumeConvolution&,
                                                                   ConvolutionPass);

template <typename T>
std::unique_ptr<CudaConvolutionPass<T>> MakeCudaConvolutionPass(const VolumeConvolution& conv,
                                                                ConvolutionPass pass) {
  if (conv.input.count() == 0 || conv.output.count() == 0 || conv.filter_elements() == 0) {
    return std::make_unique<EmptyConvolution<T>>(ResultsOf(conv, pass));
  }
  if (ConvolvesDirectly(conv)) return std::make_unique<CudaDirectConvolution<T>>(conv, pass);
  return std::make_unique<CudaColumnConvolution<T>>(conv, pass);
}

template std::unique_ptr<CudaConvolutionPass<float>> MakeCudaConvolutionPass(
    const VolumeConvolution&, ConvolutionPass);
template std::unique_ptr<CudaConvolutionPass<double>> MakeCudaConvolutionPass(
    const VolumeConvolution&, ConvolutionPass);

void AddCudaConvolution(OpRegistry& registry, std::string_view type,
                        const ParseConvolutionFunction& parse) {
  AddAllKernels(registry, type, parse, /*is_transposed=*/false);
}

void AddCudaTransposedConvolution(OpRegistry& registry, std::string_view type,
                                  const ParseConvolutionFunction& parse) {
  AddAllKernels(registry, type, parse, /*is_transposed=*/true);
}

void RegisterConv2dCuda(OpRegistry& registry) {
  AddCudaConvolution(registry, "conv2d", [](const OpContext& context) {
    return VolumeConvolutionOf(ParseConvolution(context));
  });
}

}  // namespace skiff
