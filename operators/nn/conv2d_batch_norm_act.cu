// CUDA kernels of conv2d_batch_norm_act; convolution_epilogue.h has the formula.
//
// The filters are multiplied by the slope of their channel once, not the outputs in each run. As Z
// may be the output, its sum with the shift is there before the convolution, which adds to it.
#include <cuda_runtime.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "memory/cuda_device.h"
#include "operators/common/cuda_launch.h"
#include "operators/common/cudnn_convolution.h"
#include "operators/nn/kernels/convolution.h"
#include "operators/nn/kernels/cuda_convolution.h"
#include "operators/nn/kernels/cuda_volume.cuh"
#include "operators/nn/kernels/norm_arguments.h"

namespace skiff {
namespace {

// The parameters of the normalization; nullptr: absent.
template <typename T>
struct Normalization {
  const T* scale;
  const T* bias;
  const T* mean;
  const T* variance;
  double epsilon;

  // In float64, and rounded once: the factor multiplies every weight, and the mean may be much
  // larger than the deviation.
  __device__ double Slope(int64_t channel) const {
    const double factor = scale == nullptr ? 1 : static_cast<double>(scale[channel]);
    return factor / sqrt(static_cast<double>(variance[channel]) + epsilon);
  }
  __device__ double Shift(int64_t channel) const {
    const double start = bias == nullptr ? 0 : static_cast<double>(bias[channel]);
    return start - static_cast<double>(mean[channel]) * Slope(channel);
  }
};

// Writes the filters of all channels, with `line` elements each, times their slopes, and behind
// them the shifts.
template <typename T>
__global__ void FoldFilters(Normalization<T> normalization, const T* filters, T* folded,
                            int64_t line, int64_t channels) {
  const int64_t filter_elements = line * channels;
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < filter_elements + channels;
       i += stride) {
    folded[i] = i < filter_elements ? static_cast<T>(normalization.Slope(i / line)) * filters[i]
                                    : static_cast<T>(normalization.Shift(i - filter_elements));
  }
}

// The channel of each element of the output.
struct Channels {
  FastDivisor inner;  // the elements side by side that share a channel
  FastDivisor count;

  __device__ uint32_t Of(uint32_t i) const {
    uint32_t rest = inner.Quotient(i);
    return count.TakeRemainder(&rest);
  }
};

// output = addend + shift. The two may be the same array.
template <typename T>
__global__ void StartOutput(Channels channels, const T* shifts, const T* addend, T* output,
                            uint32_t count) {
  const uint32_t stride = gridDim.x * blockDim.x;
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
    output[i] = shifts[channels.Of(i)] + addend[i];
  }
}

// output = act(output + shift). `shifts`: nullptr if they are in it.
template <typename T>
__global__ void FinishOutput(Channels channels, const T* shifts, bool rectifies, T* output,
                             uint32_t count) {
  const uint32_t stride = gridDim.x * blockDim.x;
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
    T value = output[i];
    if (shifts != nullptr) value += shifts[channels.Of(i)];
    // The comparison keeps NaN.
    output[i] = rectifies && value < T(0) ? T(0) : value;
  }
}

template <typename T>
class FusedKernel final : public Kernel {
 public:
  FusedKernel(PrepareContext& context, const VolumeConvolution& conv,
              std::unique_ptr<CudaConvolutionPass<T>> pass)
      : input_(context.InputIndex("Input")),
        addend_(context.InputIndex("Z")),
        output_(context.OutputIndex("Output")),
        rectifies_(context.Attr<std::string>("act_type") == "relu"),
        batch_(conv.output.batch),
        image_elements_(conv.output.channels * conv.output.points()),
        filter_elements_(conv.filter_elements()),
        channels_{DivisorOf(conv.order == ChannelOrder::kLast ? 1 : conv.output.points()),
                  DivisorOf(conv.output.channels)},
        pass_(std::move(pass)),
        workspace_(context.RequestWorkspace(pass_->workspace_bytes())),
        folded_(RequestFilters(context, conv)) {}

  void Run(const KernelContext& run) override {
    const T* filter = static_cast<const T*>(run.derived(folded_));
    const T* shifts = filter + filter_elements_;
    T* output = run.output(output_).data<T>();
    const bool adds = addend_ >= 0;
    if (adds) {
      const T* addend = run.input(addend_).data<T>();
      ForEachPart([&](int64_t at, int64_t count) {
        StartOutput<T><<<CudaBlocksOfThreads(count), kCudaThreads, 0, StreamOf(run)>>>(
            channels_, shifts, addend + at, output + at, static_cast<uint32_t>(count));
        CheckLaunch("conv2d_batch_norm_act");
      });
    }
    pass_->Run(run, run.input(input_).data<T>(), filter, output, run.workspace(workspace_), adds);
    if (adds && !rectifies_) return;
    ForEachPart([&](int64_t at, int64_t count) {
      FinishOutput<T><<<CudaBlocksOfThreads(count), kCudaThreads, 0, StreamOf(run)>>>(
          channels_, adds ? nullptr : shifts, rectifies_, output + at,
          static_cast<uint32_t>(count));
      CheckLaunch("conv2d_batch_norm_act");
    });
  }

 private:
  // Calls launch(first element, elements) for parts that a launch can count.
  template <typename Launch>
  void ForEachPart(const Launch& launch) const {
    ForEachCudaPart(batch_, image_elements_, [&](int64_t n, int64_t images) {
      launch(n * image_elements_, images * image_elements_);
    });
  }

  static int RequestFilters(PrepareContext& context, const VolumeConvolution& conv) {
    const int filter = context.InputIndex("Filter");
    const int scale = context.InputIndex("Scale");
    const int bias = context.InputIndex("Bias");
    const int mean = context.InputIndex("Mean");
    const int variance = context.InputIndex("Variance");
    const double epsilon = context.Attr<float>("epsilon");
    std::vector<int> present;
    for (const int input : {filter, scale, bias, mean, variance}) {
      if (input >= 0) present.push_back(input);
    }
    const int64_t channels = conv.output.channels;
    const int64_t line = conv.group_rows();
    const int64_t count = channels * line + channels;
    return context.RequestDerivedForm(
        {.inputs = std::move(present),
         .bytes = ByteCount(count, kDTypeOf<T>),
         .refresh = [=](const KernelContext& run, void* derived) {
           const Normalization<T> normalization{InputData<T>(run, scale), InputData<T>(run, bias),
                                                InputData<T>(run, mean),
                                                InputData<T>(run, variance), epsilon};
           FoldFilters<T><<<CudaBlocksOfThreads(count), kCudaThreads, 0, StreamOf(run)>>>(
               normalization, run.input(filter).data<T>(), static_cast<T*>(derived), line,
               channels);
           CheckLaunch("conv2d_batch_norm_act");
         }});
  }

  int input_;
  int addend_;
  int output_;
  bool rectifies_;
  int64_t batch_;
  int64_t image_elements_;
  int64_t filter_elements_;
  Channels channels_;
  std::unique_ptr<CudaConvolutionPass<T>> pass_;
  int workspace_;
  int folded_;
};

VolumeConvolution Parse(const OpContext& context) {
  return VolumeConvolutionOf(ParseConvolution(context));
}

template <typename T>
void AddKernel(OpRegistry& registry, KernelDef candidate,
               std::unique_ptr<CudaConvolutionPass<T>> (*make)(const VolumeConvolution&,
                                                               ConvolutionPass)) {
  candidate.place = PlaceKind::kCuda;
  candidate.dtype = kDTypeOf<T>;
  candidate.prepare = [make](PrepareContext& context) -> std::unique_ptr<Kernel> {
    const VolumeConvolution conv = Parse(context);
    return std::make_unique<FusedKernel<T>>(context, conv, make(conv, ConvolutionPass::kForward));
  };
  registry.AddKernel("conv2d_batch_norm_act", std::move(candidate));
}

}  // namespace

void RegisterConv2dBatchNormActCuda(OpRegistry& registry) {
  const KernelDef candidate{.name = "cuda", .accepts = [](const OpContext& context) {
                              return AllPlain(context) && CudaCountsConvolution(Parse(context));
                            }};
  AddKernel<float>(registry, candidate, MakeCudaConvolutionPass<float>);
  AddKernel<double>(registry, candidate, MakeCudaConvolutionPass<double>);
  if (!HasCudaDevice()) return;
  const auto accepts = [](const OpContext& context) {
    return AllPlain(context) && CudnnSupports(Parse(context), ConvolutionPass::kForward);
  };
  AddKernel<float>(registry, {.name = "cudnn", .accepts = accepts, .priority = 10}, MakeCudnnPass);
}

}  // namespace skiff
