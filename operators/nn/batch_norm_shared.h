// What the kernels of batch normalization have in common, and their loops.
#pragma once

#include <cstdint>
#include <memory>

#include "framework/op/op_context.h"
#include "framework/tensor/layout.h"
#include "operators/nn/image_window_shared.h"

namespace skiff {

// An input [N, C, …] or [N, …, C] as [batch, channels, pixels].
struct NormGeometry {
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t pixels = 1;
  ChannelOrder order = ChannelOrder::kFirst;
  int64_t block = 1;  // of the layout

  // Elements that a channel's statistics are made of.
  int64_t count() const { return batch * pixels; }
  // Channels with those that fill up the last block; arrays that go by channel have this length.
  int64_t padded_channels() const { return (channels + block - 1) / block * block; }
};

// From slot X and data_layout; dims of -1 stay unknown. Error for a rank outside [2, 5].
NormGeometry ParseNormGeometry(const OpContext& context);

// The passes over the data. Arrays by channel have padded_channels() elements; what a pass writes
// for the channels that fill up the last block is 0. T is float or double.
template <typename T>
class NormLoops {
 public:
  virtual ~NormLoops() = default;
  // Scratch memory for the passes that reduce.
  virtual int64_t scratch_bytes() const = 0;
  // mean[c], and the sum of squared distances from it.
  virtual void Moments(const T* x, void* scratch, double* mean, double* squares) const = 0;
  // y = (x - mean) · slope + shift
  virtual void Normalize(const T* x, const T* mean, const T* slope, const T* shift, T* y) const = 0;
  // The sums of dy and of dy · (x - mean).
  virtual void GradientSums(const T* x, const T* dy, const T* mean, void* scratch, double* sums,
                            double* products) const = 0;
  // dx = slope · (dy - offset - (x - mean) · factor)
  virtual void Gradient(const T* x, const T* dy, const T* mean, const T* slope, const T* offset,
                        const T* factor, T* dx) const = 0;
};

// Float32, channels first, plain or blocked by 8 or 16: one pass over memory for each reduction.
// Results do not depend on the number of threads.
std::unique_ptr<NormLoops<float>> MakeVectorNormLoops(const NormGeometry& geometry);

// Plain layout, any channel order.
template <typename T>
std::unique_ptr<NormLoops<T>> MakePlainNormLoops(const NormGeometry& geometry);

}  // namespace skiff
