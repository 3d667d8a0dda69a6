// The passes over the data in batch normalization, and common parts of the kernels.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>

#include "framework/op/kernel.h"
#include "framework/op/op_context.h"
#include "framework/op/registry.h"
#include "framework/tensor/layout.h"
#include "operators/common/half.h"
#include "operators/nn/kernels/image_window.h"

namespace skiff {

// The dims of an input [N, C, …] or [N, …, C], seen as [batch, channels, pixels].
struct NormGeometry {
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t pixels = 1;
  ChannelOrder order = ChannelOrder::kFirst;
  int64_t block = 1;  // of the layout

  // The number of elements that a channel's statistics summarize.
  int64_t count() const { return batch * pixels; }
  // The number of channels, rounded up to whole blocks. Arrays with a value for each channel have
  // this length.
  int64_t padded_channels() const { return (channels + block - 1) / block * block; }
  // Returns whether the channels of a pixel are contiguous: rows of channels.
  bool is_rows() const { return block == 1 && (order == ChannelOrder::kLast || pixels == 1); }

  // Calls visit(offset) for the elements of channel c, image by image.
  template <typename Visit>
  void ForEachElementOf(int64_t c, const Visit& visit) const {
    if (pixels == 0) return;  // the batch of an empty tensor may have any size
    const bool is_last = order == ChannelOrder::kLast;
    const int64_t first = is_last ? c : c / block * block * pixels + c % block;
    const int64_t stride = is_last ? channels : block;
    for (int64_t n = 0; n < batch; ++n) {
      const int64_t image = n * padded_channels() * pixels;
      for (int64_t i = 0; i < pixels; ++i) visit(image + first + i * stride);
    }
  }
};

// Returns the geometry of the tensor in the slot, by its shape and data_layout. Dims of -1 stay
// unknown. Throws Error for a rank outside [2, 5].
NormGeometry ParseNormGeometry(const OpContext& context, std::string_view slot = "X");

// In what follows, T is the type of the images: float, double or half. All else is WideType<T>.

// Computes the mean of channel c and the sum of squared distances from it, in float64, in two
// passes over the data: the sum of squares minus the square of the sum would cancel.
template <typename T>
void MomentsOfChannel(const NormGeometry& geometry, int64_t c, const T* x, double* mean,
                      double* squares) {
  const auto value = [x](int64_t i) { return static_cast<double>(static_cast<WideType<T>>(x[i])); };
  double sum = 0;
  geometry.ForEachElementOf(c, [&](int64_t i) { sum += value(i); });
  const double center = sum / static_cast<double>(geometry.count());
  double square_sum = 0;
  geometry.ForEachElementOf(
      c, [&](int64_t i) { square_sum += (value(i) - center) * (value(i) - center); });
  *mean = center;
  *squares = square_sum;
}

// Values for each channel: (x - mean) · slope + shift is the normalized x.
template <typename T>
struct NormLines {
  const T* mean = nullptr;
  const T* slope = nullptr;
  const T* shift = nullptr;
};

// Returns the lines of the channels from `channel` on.
template <typename T>
NormLines<T> LinesFrom(const NormLines<T>& lines, int64_t channel) {
  const auto from = [channel](const T* line) { return line == nullptr ? line : line + channel; };
  return {from(lines.mean), from(lines.slope), from(lines.shift)};
}

// Which gradients of the output pass the rectifier that follows the normalization.
enum class NormMask {
  kNone,    // all: there is no rectifier
  kInput,   // where the normalized x is positive
  kOutput,  // where the output is positive
};

template <typename T>
struct NormOutputGradient {
  const T* dy = nullptr;
  NormMask mask = NormMask::kNone;
  const T* output = nullptr;  // for kOutput
};

// Returns the gradient of the elements from `element` on.
template <typename T>
NormOutputGradient<T> GradientFrom(const NormOutputGradient<T>& gradient, int64_t element) {
  return {gradient.dy + element, gradient.mask,
          gradient.output == nullptr ? nullptr : gradient.output + element};
}

// Returns (x - mean) · slope + shift of channel c.
template <typename T>
T Normalized(T x, const NormLines<T>& lines, int64_t c) {
  return (x - lines.mean[c]) * lines.slope[c] + lines.shift[c];
}

// Returns dy at element i, which is of channel c, or 0 where the mask blocks it.
template <typename T>
WideType<T> MaskedAt(int64_t i, int64_t c, const T* x, const NormOutputGradient<T>& gradient,
                     const NormLines<WideType<T>>& lines) {
  using Wide = WideType<T>;
  const bool passes =
      gradient.mask == NormMask::kNone ||
      (gradient.mask == NormMask::kInput ? Normalized(static_cast<Wide>(x[i]), lines, c)
                                         : static_cast<Wide>(gradient.output[i])) > Wide{0};
  return passes ? static_cast<Wide>(gradient.dy[i]) : Wide{0};
}

// Computes the sums of g and of g · (x - mean) for channel c in float64, where g is dy, or 0 where
// the mask blocks it. With kOutput it also writes g to `masked`.
template <typename T>
void GradientSumsOfChannel(const NormGeometry& geometry, int64_t c, const T* x,
                           const NormOutputGradient<T>& gradient,
                           const NormLines<WideType<T>>& lines, double* sum, double* product,
                           T* masked) {
  *sum = *product = 0;
  geometry.ForEachElementOf(c, [&](int64_t i) {
    const WideType<T> g = MaskedAt(i, c, x, gradient, lines);
    const auto value = static_cast<double>(static_cast<WideType<T>>(x[i]));
    *sum += g;
    *product += static_cast<double>(g) * (value - lines.mean[c]);
    if (gradient.mask == NormMask::kOutput) masked[i] = static_cast<T>(g);
  });
}

// The passes over the data. Arrays with a value for each channel have padded_channels() elements.
// For the channels that pad the last block, a pass writes 0 (z has zeros there). Half gets the bits
// of float32, rounded.
template <typename T>
class NormLoops {
 public:
  virtual ~NormLoops() = default;
  // Sets another batch, no larger than the batch that the loops were made for.
  virtual void SetBatch(int64_t batch) = 0;
  // The size of the scratch memory that the reducing passes need.
  virtual int64_t scratch_bytes() const = 0;
  using Wide = WideType<T>;
  // Computes mean[c] and the sum of squared distances from it, which float32 loops can't do if they
  // are extreme (extreme_square.h): then MomentsOfChannel does.
  virtual void Moments(const T* x, void* scratch, double* mean, double* squares) const = 0;
  // Sets y = (x - mean) · slope + shift, plus z unless z is nullptr. With `rectify`, negative
  // results become 0.
  virtual void Normalize(const T* x, const T* z, const NormLines<Wide>& lines, bool rectify,
                         T* y) const = 0;
  // Computes the sums of g and of g · (x - mean), where g is dy, or 0 where the mask blocks it.
  // With kOutput it also writes g to `masked`, which may be dy. Float32 loops lose products below
  // 1e-45, and sums above 3.4e38 are infinite or NaN: then GradientSumsOfChannel finds them.
  virtual void GradientSums(const T* x, const NormOutputGradient<T>& gradient,
                            const NormLines<Wide>& lines, void* scratch, double* sums,
                            double* products, T* masked) const = 0;
  // Sets dx = slope · (g - offset - (x - mean) · factor). The mask must be kNone or kInput.
  virtual void Gradient(const T* x, const NormOutputGradient<T>& gradient,
                        const NormLines<Wide>& lines, const Wide* offset, const Wide* factor,
                        T* dx) const = 0;
};

// How a reduction is cut into items, each a block of channels in a part of the batch. Depends only
// on the sizes.
struct NormParts {
  // More than most machines have threads.
  static constexpr int64_t kEnoughItems = 64;

  int64_t units = 0;          // images or rows; a part consists of several
  int64_t values_a_unit = 1;  // values of one channel in a unit
  int64_t parts = 1;
  int64_t blocks = 1;
  int64_t block = 1;     // channels
  int64_t channels = 0;  // the length of arrays with a value for each channel

  int64_t Begin(int64_t part) const { return units * part / parts; }
};

struct NormItem {
  int64_t begin = 0;  // units
  int64_t end = 0;
  int64_t block = 0;
};

// Passes that reduce item by item and combine the items in order, so that results don't depend on
// the number of threads.
template <typename T>
class PartedNormLoops : public NormLoops<T> {
 public:
  int64_t scratch_bytes() const final;
  void Moments(const T* x, void* scratch, double* mean, double* squares) const final;
  void GradientSums(const T* x, const NormOutputGradient<T>& gradient,
                    const NormLines<float>& lines, void* scratch, double* sums, double* products,
                    T* masked) const final;

 protected:
  explicit PartedNormLoops(const NormParts& parts) : parts_(parts) {}
  void SetParts(const NormParts& parts) { parts_ = parts; }

  // The most channels that have their pivots found together.
  static constexpr int64_t kMostPivots = 64;
  // Sets pivot[c] to the mean of x[i * stride + c], i < values, for `width` channels.
  static void FindPivot(const T* x, int64_t values, int64_t stride, int64_t width, float* pivot);
  // Turns, for `width` channels of `count` values, the sums of distances from a pivot and of their
  // squares into the mean and the sum of squared distances from it.
  static void CenterMoments(const float* pivot, int64_t width, int64_t count, double* means,
                            double* squares);

 private:
  // Computes the mean, and the sum of squared distances from it, for each channel of an item.
  virtual void PartMoments(const T* x, const NormItem& item, double* means,
                           double* squares) const = 0;
  // Adds the sums of g and of g · (x - mean) for each channel of an item. With kOutput it writes g.
  virtual void PartGradientSums(const T* x, const NormOutputGradient<T>& gradient,
                                const NormLines<float>& lines, const NormItem& item, double* sums,
                                double* products, T* masked) const = 0;

  // Calls visit(item, index of its channels in arrays of [part, channel]) on several threads.
  template <typename Visit>
  void ForEachItem(const Visit& visit) const;

  NormParts parts_;
};

// Elements [first, first + width) of images, and as many of each of the next rows, which begin
// `stride` elements apart.
struct NormSpan {
  int64_t first = 0;
  int64_t rows = 1;
  int64_t stride = 0;
  int64_t width = 0;
};

// The images of a pass over numbers of type T. An array that the pass lacks is nullptr.
template <typename T>
struct NormImages {
  const T* x = nullptr;
  const T* z = nullptr;
  const T* dy = nullptr;
  const T* output = nullptr;
  T* result = nullptr;
};

// The vector loops of one instruction set over images of float32 or half. `lines`, `pivot`,
// `offset` and `factor` are of the first channel that a loop meets. Over rows of `size` elements:
// of one channel, or of a block of channels, the fastest dim.
template <typename T>
struct NormRowLoops {
  void (*moments)(const T* x, int64_t rows, int64_t row_stride, int64_t size, int64_t block,
                  const float* pivot, double* sums, double* squares) = nullptr;
  void (*gradient_sums)(const NormImages<T>& images, NormMask mask, int64_t rows,
                        int64_t row_stride, int64_t size, int64_t block,
                        const NormLines<float>& lines, double* sums, double* products) = nullptr;
  void (*normalize)(const NormImages<T>& images, bool rectify, int64_t start, int64_t size,
                    int64_t block, const NormLines<float>& lines) = nullptr;
  void (*gradient)(const NormImages<T>& images, NormMask mask, int64_t start, int64_t size,
                   int64_t block, const NormLines<float>& lines, const float* offset,
                   const float* factor) = nullptr;
};
// Over spans whose columns are channels.
template <typename T>
struct NormColumnLoops {
  void (*moments)(const T* x, const NormSpan& of, const float* pivot, double* sums,
                  double* squares) = nullptr;
  void (*gradient_sums)(const NormImages<T>& images, NormMask mask, const NormSpan& of,
                        const NormLines<float>& lines, double* sums, double* products) = nullptr;
  void (*normalize)(const NormImages<T>& images, bool rectify, const NormSpan& of,
                    const NormLines<float>& lines) = nullptr;
  void (*gradient)(const NormImages<T>& images, NormMask mask, const NormSpan& of,
                   const NormLines<float>& lines, const float* offset,
                   const float* factor) = nullptr;
};

// In what follows, T is float or half. Returns loops for channels first, plain or blocked by 8 or
// 16: one pass over memory for each reduction.
template <typename T>
std::unique_ptr<NormLoops<T>> MakeVectorNormLoops(const NormGeometry& geometry);
// Returns such loops for rows of channels: geometry.is_rows() must be true.
template <typename T>
std::unique_ptr<NormLoops<T>> MakeColumnNormLoops(const NormGeometry& geometry);

// Return whichever of the two fits, and whether one does: the op's images must all be blocked, or
// plain with long enough rows of pixels, or rows of channels.
template <typename T>
std::unique_ptr<NormLoops<T>> MakeFastNormLoops(const NormGeometry& geometry);
bool HasFastNormLoops(const OpContext& context);

// Returns loops for the plain layout in any channel order.
template <typename T>
std::unique_ptr<NormLoops<T>> MakePlainNormLoops(const NormGeometry& geometry);

template <typename T>
using MakeNormLoops = std::unique_ptr<NormLoops<T>> (*)(const NormGeometry&);

// Adds the kernels "plain", for all floats, and "vector", for float32 and half. Both are what
// prepare(PrepareContext&, MakeNormLoops<T>) returns. The first of the op's layout_slots must be an
// input.
template <typename Prepare>
void AddNormKernels(OpRegistry& registry, std::string_view type, const Prepare& prepare) {
  registry.AddCpuKernels<float, double, Float16, BFloat16>(
      type,
      [=]<typename T>(PrepareContext& context) { return prepare(context, MakePlainNormLoops<T>); });
  const auto add_vectors = [&]<typename T>(T) {
    registry.AddKernel(
        type,
        {.name = "vector",
         .dtype = kDTypeOf<T>,
         .prepare = [=](PrepareContext& context) { return prepare(context, MakeFastNormLoops<T>); },
         .accepts = HasFastNormLoops,
         .priority = 10});
  };
  add_vectors(float());
  add_vectors(Float16());
  add_vectors(BFloat16());
}

}  // namespace skiff
