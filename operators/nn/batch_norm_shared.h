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
  // Whether the channels of a pixel lie next to each other: rows of channels.
  bool is_rows() const { return block == 1 && (order == ChannelOrder::kLast || pixels == 1); }
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

// How a reduction is cut into items, each a block of channels in a part of the batch. It depends on
// the sizes alone.
struct NormParts {
  // As many as any machine has threads.
  static constexpr int64_t kEnoughItems = 64;

  int64_t units = 0;          // images, or rows: what a part consists of
  int64_t values_a_unit = 1;  // of one channel
  int64_t parts = 1;
  int64_t blocks = 1;
  int64_t block = 1;     // channels
  int64_t channels = 0;  // of the arrays that go by channel

  int64_t Begin(int64_t part) const { return units * part / parts; }
};

struct NormItem {
  int64_t begin = 0;  // units
  int64_t end = 0;
  int64_t block = 0;
};

// Passes that reduce item by item and combine the items in order, so that results do not depend on
// the number of threads.
class PartedNormLoops : public NormLoops<float> {
 public:
  int64_t scratch_bytes() const final;
  void Moments(const float* x, void* scratch, double* mean, double* squares) const final;
  void GradientSums(const float* x, const float* dy, const float* mean, void* scratch, double* sums,
                    double* products) const final;

 protected:
  explicit PartedNormLoops(const NormParts& parts) : parts_(parts) {}

  // Sets pivot[c] to the mean of x[i * stride + c], i < values, for `width` channels.
  static void FindPivot(const float* x, int64_t values, int64_t stride, int64_t width,
                        float* pivot);
  // For `width` channels of `count` values: from the sums of distances from a pivot, and of their
  // squares, to the mean and the sum of squared distances from it.
  static void CenterMoments(const float* pivot, int64_t width, int64_t count, double* means,
                            double* squares);

 private:
  // Sets the mean, and the sum of squared distances from it, of the channels of an item.
  virtual void PartMoments(const float* x, const NormItem& item, double* means,
                           double* squares) const = 0;
  // Adds the sums of dy and of dy · (x - mean) of the channels of an item.
  virtual void PartGradientSums(const float* x, const float* dy, const float* mean,
                                const NormItem& item, double* sums, double* products) const = 0;

  // Calls visit(item, place of its channels in arrays of [part, channel]) on threads.
  template <typename Visit>
  void ForEachItem(const Visit& visit) const;

  NormParts parts_;
};

// Float32, channels first, plain or blocked by 8 or 16: one pass over memory for each reduction.
std::unique_ptr<NormLoops<float>> MakeVectorNormLoops(const NormGeometry& geometry);
// Float32, geometry.is_rows(): likewise.
std::unique_ptr<NormLoops<float>> MakeColumnNormLoops(const NormGeometry& geometry);

// Plain layout, any channel order.
template <typename T>
std::unique_ptr<NormLoops<T>> MakePlainNormLoops(const NormGeometry& geometry);

}  // namespace skiff
