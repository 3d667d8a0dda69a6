// Convolutions by direct loops, for filters with a single input or output channel: their matrix
// products would be sums of a few terms. Each thread computes an element, and a block an element of
// the filter's gradient.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "operators/common/cuda/cuda_combine.cuh"
#include "operators/common/cuda/cuda_launch.h"
#include "operators/nn/convolution/cuda_convolution.h"
#include "operators/nn/kernels/cuda_windows.cuh"

namespace skiff {

// The channels of a group.
struct CudaGroup {
  uint32_t inputs;
  uint32_t outputs;
};

template <typename T>
__global__ void ConvolveDirectly(CudaWindows windows, CudaVolume in, CudaVolume out,
                                 CudaGroup group, const T* input, const T* filter, T* output,
                                 bool adds, uint32_t count) {
  const uint32_t stride = gridDim.x * blockDim.x;
  const auto taps = static_cast<uint32_t>(windows.taps());
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
    const CudaElement at = out.At(i);
    const uint32_t first = at.c / group.outputs * group.inputs;
    T sum = adds ? output[i] : T(0);
    for (uint32_t c = 0; c < group.inputs; ++c) {
      const T* channel = input + in.Channel(at.n, first + c);
      const T* weights = filter + (at.c * group.inputs + c) * taps;
      windows.ForEachTap(at.place, [&](int tap, bool is_inside, const int(&point)[3]) {
        if (!is_inside) return;
        sum += weights[tap] *
               channel[point[0] * in.step(0) + point[1] * in.step(1) + point[2] * in.step(2)];
      });
    }
    output[i] = sum;
  }
}

template <typename T>
__global__ void ConvolveBackDirectly(CudaWindows windows, CudaVolume in, CudaVolume out,
                                     CudaGroup group, const T* output_gradient, const T* filter,
                                     T* input_gradient, uint32_t count) {
  const uint32_t stride = gridDim.x * blockDim.x;
  const auto taps = static_cast<uint32_t>(windows.taps());
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
    const CudaElement at = in.At(i);
    const uint32_t group_index = at.c / group.inputs;
    const uint32_t in_group = at.c - group_index * group.inputs;
    const uint32_t first = group_index * group.outputs;
    T sum = 0;
    for (uint32_t o = first; o < first + group.outputs; ++o) {
      const T* channel = output_gradient + out.Channel(at.n, o);
      const T* weights = filter + (o * group.inputs + in_group) * taps;
      windows.ForEachWindow(at.place, [&](int tap, const int(&point)[3]) {
        sum += weights[tap] *
               channel[point[0] * out.step(0) + point[1] * out.step(1) + point[2] * out.step(2)];
      });
    }
    input_gradient[i] = sum;
  }
}

// `pixels`: an output of one channel, as a volume. Sums are float64, as on the CPU: batch times
// points may be millions of terms.
template <typename T>
__global__ void CorrelateDirectly(CudaWindows windows, CudaVolume in, CudaVolume out,
                                  CudaVolume pixels, CudaGroup group, const T* output_gradient,
                                  const T* input, T* filter_gradient, bool adds,
                                  uint32_t filter_elements, uint32_t count) {
  const auto taps = static_cast<uint32_t>(windows.taps());
  for (uint32_t element = blockIdx.x; element < filter_elements; element += gridDim.x) {
    const uint32_t line = element / taps;
    const uint32_t tap = element - line * taps;
    const uint32_t o = line / group.inputs;
    const uint32_t c = o / group.outputs * group.inputs + (line - o * group.inputs);
    double sum = 0;
    for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
      const CudaElement at = pixels.At(i);
      uint32_t pixel = 0;
      if (!windows.PixelOfTap(tap, at.place, in, &pixel)) continue;
      const uint32_t to = out.Channel(at.n, o) + at.place[0] * out.step(0) +
                          at.place[1] * out.step(1) + at.place[2] * out.step(2);
      sum += static_cast<double>(output_gradient[to]) *
             static_cast<double>(input[in.Channel(at.n, c) + pixel]);
    }
    sum = CombineBlock(sum, JoinBySum{});
    if (threadIdx.x == 0) {
      filter_gradient[element] =
          static_cast<T>(adds ? static_cast<double>(filter_gradient[element]) + sum : sum);
    }
  }
}

// Returns whether direct loops are the better choice.
inline bool ConvolvesDirectly(const VolumeConvolution& conv) {
  constexpr int64_t kManyChannels = 64;
  const auto [least, most] = std::minmax({conv.group_inputs(), conv.group_outputs()});
  return least == 1 && most <= kManyChannels;
}

// A convolution whose images and filter have elements.
template <typename T>
class CudaDirectConvolution final : public CudaConvolutionPass<T> {
 public:
  CudaDirectConvolution(const VolumeConvolution& conv, ConvolutionPass pass)
      : pass_(pass),
        batch_(conv.input.batch),
        input_elements_(conv.input.channels * conv.input.points()),
        output_elements_(conv.output.channels * conv.output.points()),
        output_points_(conv.output.points()),
        filter_elements_(conv.filter_elements()),
        windows_(conv),
        in_(CudaVolumeOf(conv.input, conv.order)),
        out_(CudaVolumeOf(conv.output, conv.order)),
        pixels_(1, conv.output.size, false),
        group_{static_cast<uint32_t>(conv.group_inputs()),
               static_cast<uint32_t>(conv.group_outputs())} {}

  int64_t workspace_bytes() const override { return 0; }

  void Run(const KernelContext& run, const T* first, const T* second, T* result,
           void* /*workspace*/, bool adds) const override {
    const cudaStream_t stream = StreamOf(run);
    const int64_t elements = std::max(input_elements_, output_elements_);
    ForEachCudaPart(batch_, elements, [&](int64_t n, int64_t images) {
      const int64_t input = n * input_elements_;
      const int64_t output = n * output_elements_;
      switch (pass_) {
        case ConvolutionPass::kForward: {
          const int64_t count = images * output_elements_;
          ConvolveDirectly<T><<<CudaBlocksOfThreads(count), kCudaThreads, 0, stream>>>(
              windows_, in_, out_, group_, first + input, second, result + output, adds,
              static_cast<uint32_t>(count));
          break;
        }
        case ConvolutionPass::kBackwardData: {
          const int64_t count = images * input_elements_;
          ConvolveBackDirectly<T><<<CudaBlocksOfThreads(count), kCudaThreads, 0, stream>>>(
              windows_, in_, out_, group_, first + output, second, result + input,
              static_cast<uint32_t>(count));
          break;
        }
        case ConvolutionPass::kBackwardFilter:
          CorrelateDirectly<T><<<CudaBlocks(filter_elements_), kCudaThreads, 0, stream>>>(
              windows_, in_, out_, pixels_, group_, first + output, second + input, result, n > 0,
              static_cast<uint32_t>(filter_elements_),
              static_cast<uint32_t>(images * output_points_));
          break;
      }
      CheckLaunch("convolution");
    });
  }

 private:
  ConvolutionPass pass_;
  int64_t batch_;
  int64_t input_elements_;  // of an image
  int64_t output_elements_;
  int64_t output_points_;
  int64_t filter_elements_;
  CudaWindows windows_;
  CudaVolume in_;
  CudaVolume out_;
  CudaVolume pixels_;
  CudaGroup group_;
};

}  // namespace skiff
