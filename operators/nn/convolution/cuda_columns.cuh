// The columns of convolutions (window_taps.h) on a device: a matrix [channels · taps, points], or
// with channels last [points, channels · taps].
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "operators/common/cuda/cuda_vectors.cuh"
#include "operators/nn/kernels/cuda_windows.cuh"

namespace skiff {

// The columns of a part: of all channels of some images, at points [begin, begin + points).
struct CudaColumns {
  FastDivisor channels;
  FastDivisor points;
  FastDivisor width;  // of the output
  FastDivisor height;
  uint32_t channel_count;
  uint32_t point_count;
  uint32_t begin;

  CudaColumns(const VolumeConvolution& conv, int64_t part_points, int64_t first)
      : channels(DivisorOf(conv.input.channels)),
        points(DivisorOf(part_points)),
        width(DivisorOf(conv.output.size[2])),
        height(DivisorOf(conv.output.size[1])),
        channel_count(static_cast<uint32_t>(conv.input.channels)),
        point_count(static_cast<uint32_t>(part_points)),
        begin(static_cast<uint32_t>(first)) {}
};

// A thread fills the column of a channel at a point. `count`: channels times points.
template <typename T, bool kChannelsLast>
__global__ void FillColumns(CudaWindows windows, CudaVolume in, CudaColumns part, const T* images,
                            T* columns, uint32_t count) {
  const uint32_t stride = gridDim.x * blockDim.x;
  const auto taps = static_cast<uint32_t>(windows.taps());
  const uint32_t step = kChannelsLast ? 1 : part.point_count;
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
    uint32_t rest = i;
    uint32_t c = 0;
    if constexpr (kChannelsLast) c = part.channels.TakeRemainder(&rest);
    const uint32_t p = part.points.TakeRemainder(&rest);
    if constexpr (!kChannelsLast) c = part.channels.TakeRemainder(&rest);
    uint32_t place[3];
    place[0] = part.begin + p;
    place[2] = part.width.TakeRemainder(&place[0]);
    place[1] = part.height.TakeRemainder(&place[0]);
    const T* channel = images + in.Channel(rest, c);
    T* column = columns + (kChannelsLast ? i * taps : (i - p) * taps + p);
    windows.ForEachTap(place, [&](int tap, bool is_inside, const int(&point)[3]) {
      column[tap * step] =
          is_inside ? channel[point[0] * in.step(0) + point[1] * in.step(1) + point[2] * in.step(2)]
                    : T{};
    });
  }
}

// A thread sums the numbers in the columns for an element of the images. `adds`: to the sum of an
// earlier part.
template <typename T, bool kChannelsLast>
__global__ void CollectColumns(CudaWindows windows, CudaVolume in, CudaColumns part,
                               const T* columns, T* images, bool adds, uint32_t count) {
  const uint32_t stride = gridDim.x * blockDim.x;
  const auto taps = static_cast<uint32_t>(windows.taps());
  const int height = windows.outputs(1);
  const int width = windows.outputs(2);
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
    const CudaElement at = in.At(i);
    WideType<T> sum = adds ? Widened(images[i]) : WideType<T>(0);
    windows.ForEachWindow(at.place, [&](int tap, const int(&point)[3]) {
      const uint32_t p =
          static_cast<uint32_t>((point[0] * height + point[1]) * width + point[2]) - part.begin;
      // Also true for points before the first.
      if (p >= part.point_count) return;
      const uint32_t column =
          kChannelsLast ? ((at.n * part.point_count + p) * part.channel_count + at.c) * taps + tap
                        : ((at.n * part.channel_count + at.c) * taps + tap) * part.point_count + p;
      sum += Widened(columns[column]);
    });
    images[i] = Rounded<T>(sum);
  }
}

}  // namespace skiff
