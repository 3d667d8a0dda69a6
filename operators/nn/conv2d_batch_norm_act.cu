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
#include "framework/op/arguments.h"
#include "memory/cuda_device.h"
#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/libraries/cudnn_convolution.h"
#include "operators/nn/convolution/convolution_geometry.h"
#include "operators/nn/convolution/cuda_convolution.h"
#include "operators/nn/kernels/cuda_volume.cuh"

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

// Requests the folded filters and, behind them, the shifts. Returns the index of the form.
template <typename T>
int RequestConv2dBatchNormActFilters(PrepareContext& context, const VolumeConvolution& conv) {
  const In<T> filter(context, "Filter");
  const In<T> scale(context, "Scale");
  const In<T> bias(context, "Bias");
  const In<T> mean(context, "Mean");
  const In<T> variance(context, "Variance");
  const double epsilon = context.Attr<float>("epsilon");
  std::vector<int> present;
  for (const In<T>& input : {filter, scale, bias, mean, variance}) {
    if (input.is_there()) present.push_back(input.index());
  }
  const int64_t channels = conv.output.channels;
  const int64_t line = conv.group_rows();
  const int64_t count = channels * line + channels;
  return context.RequestDerivedForm(
      {.inputs = std::move(present),
       .bytes = ByteCount(count, kDTypeOf<T>),
       .refresh = [=](const KernelContext& run, void* derived) {
         const Normalization<T> normalization{scale(run), bias(run), mean(run), variance(run),
                                              epsilon};
         FoldFilters<T><<<CudaBlocksOfThreads(count), kCudaThreads, 0, StreamOf(run)>>>(
             normalization, filter(run), static_cast<T*>(derived), line, channels);
         CheckLaunch("conv2d_batch_norm_act");
       }});
}

template <typename T>
std::unique_ptr<Kernel> PrepareConv2dBatchNormAct(PrepareContext& context,
                                                  const VolumeConvolution& conv,
                                                  std::unique_ptr<CudaConvolutionPass<T>> pass) {
  const In<T> input(context, "Input");
  const In<T> addend(context, "Z");
  const Out<T> output(context, "Output");
  const bool rectifies = context.Attr<std::string>("act_type") == "relu";
  const int64_t batch = conv.output.batch;
  const int64_t image_elements = conv.output.channels * conv.output.points();
  const int64_t filter_elements = conv.filter_elements();
  const Channels channels{DivisorOf(conv.order == ChannelOrder::kLast ? 1 : conv.output.points()),
                          DivisorOf(conv.output.channels)};
  const int workspace = context.RequestWorkspace(pass->workspace_bytes());
  const int folded = RequestConv2dBatchNormActFilters<T>(context, conv);
  return MakeKernel([=, pass = std::move(pass)](const KernelContext& run) {
    // Calls launch(first element, elements) for parts that a launch can count.
    const auto for_each_part = [&](const auto& launch) {
      ForEachCudaPart(batch, image_elements, [&](int64_t n, int64_t images) {
        launch(n * image_elements, images * image_elements);
      });
    };
    const T* filter = static_cast<const T*>(run.derived(folded));
    const T* shifts = filter + filter_elements;
    const bool adds = addend.is_there();
    if (adds) {
      for_each_part([&, from = addend(run), to = output(run)](int64_t at, int64_t count) {
        StartOutput<T><<<CudaBlocksOfThreads(count), kCudaThreads, 0, StreamOf(run)>>>(
            channels, shifts, from + at, to + at, static_cast<uint32_t>(count));
        CheckLaunch("conv2d_batch_norm_act");
      });
    }
    pass->Run(run, input(run), filter, output(run), run.workspace(workspace), adds);
    if (adds && !rectifies) return;
    for_each_part([&, to = output(run)](int64_t at, int64_t count) {
      FinishOutput<T><<<CudaBlocksOfThreads(count), kCudaThreads, 0, StreamOf(run)>>>(
          channels, adds ? nullptr : shifts, rectifies, to + at, static_cast<uint32_t>(count));
      CheckLaunch("conv2d_batch_norm_act");
    });
  });
}

VolumeConvolution Parse(const OpContext& context) {
  return VolumeConvolutionOf(ParseConvolution(context));
}

template <typename T>
void AddKernel(OpRegistry& registry, KernelDef candidate,
               std::unique_ptr<CudaConvolutionPass<T>> (*make)(const VolumeConvolution&,
                                                               ConvolutionPass)) {
  candidate.place = PlaceKind::kCuda;
  candidate.dtype = kDTypeOf<T>;
  candidate.prepare = [make](PrepareContext& context) {
    const VolumeConvolution conv = InMathOf(context, Parse(context));
    return PrepareConv2dBatchNormAct<T>(context, conv, make(conv, ConvolutionPass::kForward));
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
  AddKernel<float>(registry, {.name = "cudnn", .accepts = accepts, .priority = 10},
                   MakeCudnnPass<float>);
}

}  // namespace skiff
