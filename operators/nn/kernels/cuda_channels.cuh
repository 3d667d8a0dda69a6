// Images on CUDA as [batch, channels, pixels] or [batch, pixels, channels], for what has numbers by
// channel.
#pragma once

#include <cstdint>
#include <string>

#include "framework/op/op_context.h"
#include "operators/common/cuda/cuda_fold.cuh"
#include "operators/common/cuda/cuda_for_each.cuh"

namespace skiff {

struct CudaChannels {
  // Of a shape that the op's shape rule has accepted, in the order of the attribute data_layout.
  CudaChannels(const OpContext& context, const Shape& shape) {
    is_last = context.Attr<std::string>("data_layout") == "NHWC";
    const int axis = is_last ? shape.rank() - 1 : 1;
    batch = shape[0];
    channels = shape[axis];
    for (int i = 1; i < shape.rank(); ++i) {
      if (i != axis) pixels *= shape[i];
    }
    // Then both orders are one.
    is_last = is_last || pixels == 1;
  }

  // The number of elements of a channel.
  int64_t count() const { return batch * pixels; }
  int64_t elements() const { return count() * channels; }
  // The length of what repeats in memory: within a pack, either all channels are the same, or they
  // are neighbours.
  int64_t period() const { return is_last ? channels : pixels; }

  // For the reduction of all but the channels.
  CudaFoldView View() const {
    AxisFlags reduced{};
    reduced[0] = reduced[is_last ? 1 : 2] = true;
    return is_last ? CudaFoldView({batch, pixels, channels}, reduced)
                   : CudaFoldView({batch, channels, pixels}, reduced);
  }

  __device__ int64_t ChannelOf(int64_t element) const {
    return Divide(is_last ? element : Divide(element, pixels).quotient, channels).rest;
  }
  // Returns the place of some element of a channel.
  __device__ int64_t FirstOf(int64_t channel) const { return is_last ? channel : channel * pixels; }

  int64_t batch = 0;
  int64_t channels = 0;
  int64_t pixels = 1;
  bool is_last = false;
};

}  // namespace skiff
