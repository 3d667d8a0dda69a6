#include "operators/nn/batch_norm_shared.h"

#include "framework/base/error.h"
#include "framework/base/parallel.h"

namespace skiff {
namespace {

// One thread a channel, sums in float64.
template <typename T>
class PlainNormLoops final : public NormLoops<T> {
 public:
  explicit PlainNormLoops(const NormGeometry& geometry)
      : geometry_(geometry),
        channel_stride_(geometry.order == ChannelOrder::kFirst ? geometry.pixels : 1),
        pixel_stride_(geometry.order == ChannelOrder::kFirst ? 1 : geometry.channels) {}

  int64_t scratch_bytes() const override { return 0; }

  void Moments(const T* x, void* /*scratch*/, double* mean, double* squares) const override {
    ForEachChannel([&](int64_t c) {
      double sum = 0;
      ForEachElement(c, [&](int64_t i) { sum += x[i]; });
      const double center = sum / static_cast<double>(geometry_.count());
      double square_sum = 0;
      ForEachElement(c, [&](int64_t i) { square_sum += (x[i] - center) * (x[i] - center); });
      mean[c] = center;
      squares[c] = square_sum;
    });
  }

  void Normalize(const T* x, const T* mean, const T* slope, const T* shift, T* y) const override {
    ForEachChannel([&](int64_t c) {
      ForEachElement(c, [&](int64_t i) { y[i] = (x[i] - mean[c]) * slope[c] + shift[c]; });
    });
  }

  void GradientSums(const T* x, const T* dy, const T* mean, void* /*scratch*/, double* sums,
                    double* products) const override {
    ForEachChannel([&](int64_t c) {
      double sum = 0;
      double product = 0;
      ForEachElement(c, [&](int64_t i) {
        sum += dy[i];
        product += static_cast<double>(dy[i]) * (static_cast<double>(x[i]) - mean[c]);
      });
      sums[c] = sum;
      products[c] = product;
    });
  }

  void Gradient(const T* x, const T* dy, const T* mean, const T* slope, const T* offset,
                const T* factor, T* dx) const override {
    ForEachChannel([&](int64_t c) {
      ForEachElement(c, [&](int64_t i) {
        dx[i] = slope[c] * (dy[i] - offset[c] - (x[i] - mean[c]) * factor[c]);
      });
    });
  }

 private:
  template <typename Visit>
  void ForEachChannel(const Visit& visit) const {
    ParallelFor(geometry_.channels, GrainOf(geometry_.count()), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) visit(c);
    });
  }

  template <typename Visit>
  void ForEachElement(int64_t c, const Visit& visit) const {
    for (int64_t n = 0; n < geometry_.batch; ++n) {
      const int64_t first = n * geometry_.channels * geometry_.pixels + c * channel_stride_;
      for (int64_t i = 0; i < geometry_.pixels; ++i) visit(first + i * pixel_stride_);
    }
  }

  NormGeometry geometry_;
  int64_t channel_stride_;
  int64_t pixel_stride_;
};

}  // namespace

NormGeometry ParseNormGeometry(const OpContext& context) {
  const TensorMeta& x = context.Input("X");
  const int rank = x.shape.rank();
  SKIFF_ENFORCE(rank >= 2 && rank <= 5, kInvalidArgument, context.op().type, ": X of shape ",
                x.shape, ": expected a rank from 2 to 5");
  NormGeometry geometry;
  geometry.order = ParseChannelOrder(context, "data_layout");
  geometry.block = x.layout.channel_block;
  const int channel_axis = geometry.order == ChannelOrder::kFirst ? 1 : rank - 1;
  geometry.batch = x.shape[0];
  geometry.channels = x.shape[channel_axis];
  for (int axis = 1; axis < rank; ++axis) {
    if (axis == channel_axis) continue;
    const bool known = geometry.pixels >= 0 && x.shape[axis] >= 0;
    geometry.pixels = known ? geometry.pixels * x.shape[axis] : -1;
  }
  return geometry;
}

template <typename T>
std::unique_ptr<NormLoops<T>> MakePlainNormLoops(const NormGeometry& geometry) {
  return std::make_unique<PlainNormLoops<T>>(geometry);
}

template std::unique_ptr<NormLoops<float>> MakePlainNormLoops<float>(const NormGeometry&);
template std::unique_ptr<NormLoops<double>> MakePlainNormLoops<double>(const NormGeometry&);

}  // namespace skiff
