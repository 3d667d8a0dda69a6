// The windows of poolings on a device, where images are volumes of depth 1.
#pragma once

#include <algorithm>
#include <cstdint>

#include "operators/nn/kernels/cuda_volume.cuh"
#include "operators/nn/pooling/cuda_pooling.h"

namespace skiff {

// Returns a pooling of images.
inline CudaPooling CudaPoolingOf(const Pooling& pooling) {
  CudaPooling parsed{.batch = pooling.input.batch,
                     .channels = pooling.input.channels,
                     .channels_last = pooling.order == ChannelOrder::kLast,
                     .is_max = pooling.is_max,
                     .exclusive = pooling.exclusive};
  parsed.axes[0] = {.inputs = 1, .outputs = 1};
  for (size_t axis = 0; axis < 2; ++axis) parsed.axes[axis + 1] = WindowsAlong(pooling, axis);
  return parsed;
}

// What a window covers along an axis: see WindowSpan. The input's size fits into 32 bits.
struct CudaSpan {
  int begin;
  int end;
  int64_t extent;
};

struct CudaPoolingWindows {
  AxisWindows axes[3];
  bool exclusive;

  __device__ CudaSpan At(int axis, int64_t o) const {
    const AxisWindows& windows = axes[axis];
    int64_t begin = 0;
    int64_t end = 0;
    if (windows.adaptive) {
      begin = o * windows.inputs / windows.outputs;
      end = ((o + 1) * windows.inputs + windows.outputs - 1) / windows.outputs;
    } else {
      begin = o * windows.stride - windows.padding;
      end = begin + windows.kernel;
      if (end > windows.inputs + windows.padding) end = windows.inputs + windows.padding;
    }
    const int64_t extent = end > begin ? end - begin : 0;
    if (begin < 0) begin = 0;
    if (end > windows.inputs) end = windows.inputs;
    if (end < begin || windows.is_empty) end = begin = 0;
    return {static_cast<int>(begin), static_cast<int>(end), extent};
  }

  // Returns the windows that cover point `at` of the input, from `begin` to before `end`.
  __device__ CudaSpan Covering(int axis, int64_t at) const {
    const AxisWindows& windows = axes[axis];
    int64_t begin = 0;
    int64_t end = 0;
    if (windows.adaptive) {
      begin = at * windows.outputs / windows.inputs;
      end = ((at + 1) * windows.outputs + windows.inputs - 1) / windows.inputs;
    } else {
      // Both are below 2^32, for which the division is much faster.
      const auto last = static_cast<uint32_t>(at + windows.padding);
      const auto stride = static_cast<uint32_t>(windows.stride);
      const auto kernel = static_cast<uint32_t>(windows.kernel);
      begin = last < kernel ? 0 : (last - kernel) / stride + 1;
      end = int64_t{last / stride} + 1;
    }
    if (end > windows.outputs) end = windows.outputs;
    return {static_cast<int>(begin), static_cast<int>(end), 0};
  }

  __device__ int64_t Divisor(const CudaSpan (&spans)[3]) const {
    int64_t divisor = 1;
    for (const CudaSpan& span : spans) divisor *= exclusive ? span.end - span.begin : span.extent;
    return divisor;
  }
};

// A pooling as kernels see it.
struct CudaPoolingLaunch {
  // Windows of at least this many elements are shared by a warp.
  static constexpr int64_t kSharedElements = 32;

  explicit CudaPoolingLaunch(const CudaPooling& pooling)
      : batch(pooling.batch),
        input_elements(pooling.input_elements()),
        output_elements(pooling.output_elements()),
        windows{{pooling.axes[0], pooling.axes[1], pooling.axes[2]}, pooling.exclusive},
        in(pooling.channels,
           {pooling.axes[0].inputs, pooling.axes[1].inputs, pooling.axes[2].inputs},
           pooling.channels_last),
        out(pooling.channels,
            {pooling.axes[0].outputs, pooling.axes[1].outputs, pooling.axes[2].outputs},
            pooling.channels_last) {
    int64_t elements = 1;
    for (const AxisWindows& axis : pooling.axes) {
      elements *= axis.adaptive ? (axis.inputs + axis.outputs - 1) / axis.outputs
                                : std::min(axis.kernel, axis.inputs);
    }
    shares_windows = !pooling.channels_last && elements >= kSharedElements;
  }

  template <typename Function>
  void ForEachPart(const Function& launch) const {
    ForEachCudaPart(batch, std::max(input_elements, output_elements), launch);
  }

  int64_t batch;
  int64_t input_elements;
  int64_t output_elements;
  bool shares_windows = false;
  CudaPoolingWindows windows;
  CudaVolume in;
  CudaVolume out;
};

}  // namespace skiff
