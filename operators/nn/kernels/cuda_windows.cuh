// How CUDA kernels walk over the taps of a convolution's windows.
#pragma once

#include <cstdint>

#include "operators/nn/convolution/volume_convolution.h"
#include "operators/nn/kernels/cuda_volume.cuh"

namespace skiff {

// The numbers of a convolution whose images have elements. CudaCountsConvolution holds for it, so
// 32 bits suffice.
class CudaWindows {
 public:
  explicit CudaWindows(const VolumeConvolution& conv) {
    for (size_t axis = 0; axis < 3; ++axis) {
      const int64_t stride = conv.window.stride[axis];
      const int64_t dilation = conv.window.dilation[axis];
      Axis& to = axes_[axis];
      to.inputs = static_cast<int>(conv.input.size[axis]);
      to.outputs = static_cast<int>(conv.output.size[axis]);
      to.kernel = static_cast<int>(conv.window.kernel[axis]);
      to.stride = static_cast<int>(stride);
      to.dilation = static_cast<int>(dilation);
      to.padding = static_cast<int>(conv.window.pad_begin[axis]);
      to.whole_steps = static_cast<int>(dilation / stride);
      to.rest_of_steps = static_cast<int>(dilation % stride);
    }
  }

  __device__ int taps() const { return axes_[0].kernel * axes_[1].kernel * axes_[2].kernel; }
  __device__ int outputs(int axis) const { return axes_[axis].outputs; }

  // Calls visit(tap, is_inside, {z, y, x}) for each tap, at output point `place`, with the tap's
  // input point, which is on the input only if is_inside.
  template <typename Visit>
  __device__ void ForEachTap(const uint32_t (&place)[3], const Visit& visit) const {
    int first[3];
    for (int axis = 0; axis < 3; ++axis) {
      first[axis] = static_cast<int>(place[axis]) * axes_[axis].stride - axes_[axis].padding;
    }
    int tap = 0;
    int point[3];
    for (int i = 0; i < axes_[0].kernel; ++i) {
      point[0] = first[0] + i * axes_[0].dilation;
      for (int j = 0; j < axes_[1].kernel; ++j) {
        point[1] = first[1] + j * axes_[1].dilation;
        const bool is_row_inside = IsInside(0, point[0]) && IsInside(1, point[1]);
        for (int k = 0; k < axes_[2].kernel; ++k, ++tap) {
          point[2] = first[2] + k * axes_[2].dilation;
          visit(tap, is_row_inside && IsInside(2, point[2]), point);
        }
      }
    }
  }

  // Sets *pixel to the index, in a channel of `in`, of the input point that output point `place`
  // sees through a tap. Returns whether it is on the input.
  __device__ bool PixelOfTap(uint32_t tap, const uint32_t (&place)[3], const CudaVolume& in,
                             uint32_t* pixel) const {
    bool is_inside = true;
    *pixel = 0;
    for (int axis = 2; axis >= 0; --axis) {
      const auto kernel = static_cast<uint32_t>(axes_[axis].kernel);
      const auto at = static_cast<int>(tap % kernel);
      tap /= kernel;
      const int point = static_cast<int>(place[axis]) * axes_[axis].stride - axes_[axis].padding +
                        at * axes_[axis].dilation;
      is_inside = is_inside && IsInside(axis, point);
      *pixel += static_cast<uint32_t>(point) * in.step(axis);
    }
    return is_inside;
  }

  // Calls visit(tap, {z, y, x}) for each tap of a window through which an output point sees point
  // `place` of the input, in the order of the taps.
  template <typename Visit>
  __device__ void ForEachWindow(const uint32_t (&place)[3], const Visit& visit) const {
    const Seen first[3] = {FirstSeen(0, place[0]), FirstSeen(1, place[1]), FirstSeen(2, place[2])};
    Seen z = first[0];
    int point[3];
    for (int i = 0; i < axes_[0].kernel && z.output >= 0; ++i, Advance(0, &z)) {
      if (!IsOutput(0, z)) continue;
      point[0] = z.output;
      Seen y = first[1];
      for (int j = 0; j < axes_[1].kernel && y.output >= 0; ++j, Advance(1, &y)) {
        if (!IsOutput(1, y)) continue;
        point[1] = y.output;
        Seen x = first[2];
        for (int k = 0; k < axes_[2].kernel && x.output >= 0; ++k, Advance(2, &x)) {
          if (!IsOutput(2, x)) continue;
          point[2] = x.output;
          visit((i * axes_[1].kernel + j) * axes_[2].kernel + k, point);
        }
      }
    }
  }

 private:
  struct Axis {
    int inputs;
    int outputs;
    int kernel;
    int stride;
    int dilation;
    int padding;
    // The dilation in strides.
    int whole_steps;
    int rest_of_steps;
  };

  // A tap is on a point if output · stride + rest is the point's distance from the tap of output
  // 0, and the rest is 0. From one tap to the next, nothing is divided.
  struct Seen {
    int output;
    int rest;
  };

  __device__ bool IsInside(int axis, int point) const {
    return static_cast<unsigned>(point) < static_cast<unsigned>(axes_[axis].inputs);
  }
  __device__ Seen FirstSeen(int axis, uint32_t place) const {
    const uint32_t distance = place + static_cast<uint32_t>(axes_[axis].padding);
    const auto stride = static_cast<uint32_t>(axes_[axis].stride);
    if (stride == 1) return {static_cast<int>(distance), 0};
    const uint32_t output = distance / stride;
    return {static_cast<int>(output), static_cast<int>(distance - output * stride)};
  }
  __device__ void Advance(int axis, Seen* seen) const {
    seen->output -= axes_[axis].whole_steps;
    seen->rest -= axes_[axis].rest_of_steps;
    if (seen->rest < 0) {
      seen->rest += axes_[axis].stride;
      --seen->output;
    }
  }
  __device__ bool IsOutput(int axis, const Seen& seen) const {
    return seen.rest == 0 && seen.output < axes_[axis].outputs;
  }

  Axis axes_[3];
};

// Returns the batch of a convolution's input, or output.
inline CudaVolume CudaVolumeOf(const VolumeDims& dims, ChannelOrder order) {
  return CudaVolume(dims.channels, dims.size, order == ChannelOrder::kLast);
}

}  // namespace skiff
