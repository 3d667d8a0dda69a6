#include "operators/nn/normalization/batch_norm_passes.h"

#include <algorithm>
#include <array>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "operators/nn/normalization/rank_statistics.h"

namespace skiff {
namespace {

// Direct loops. Each channel is the work of one thread, and sums are float64, so results depend
// neither on the number of threads nor on the order of channels in memory.
template <typename T>
class PlainNormLoops final : public NormLoops<T> {
  using Wide = WideType<T>;

 public:
  explicit PlainNormLoops(const NormGeometry& geometry) : geometry_(geometry) {}

  void SetBatch(int64_t batch) override { geometry_.batch = batch; }

  int64_t scratch_bytes() const override { return 0; }

  void Moments(const T* x, void* /*scratch*/, double* mean, double* squares) const override {
    ForEachChannel([&](int64_t c) { MomentsOfChannel(geometry_, c, x, &mean[c], &squares[c]); });
  }

  void Normalize(const T* x, const T* z, const NormLines<Wide>& lines, bool rectify,
                 T* y) const override {
    ForEachChannel([&](int64_t c) {
      geometry_.ForEachElementOf(c, [&](int64_t i) {
        Wide value = Normalized(static_cast<Wide>(x[i]), lines, c);
        if (z != nullptr) value += static_cast<Wide>(z[i]);
        // The comparison keeps NaN.
        y[i] = static_cast<T>(rectify && value < Wide{0} ? Wide{0} : value);
      });
    });
  }

  void GradientSums(const T* x, const NormOutputGradient<T>& gradient, const NormLines<Wide>& lines,
                    void* /*scratch*/, double* sums, double* products, T* masked) const override {
    ForEachChannel([&](int64_t c) {
      GradientSumsOfChannel(geometry_, c, x, gradient, lines, &sums[c], &products[c], masked);
    });
  }

  void Gradient(const T* x, const NormOutputGradient<T>& gradient, const NormLines<Wide>& lines,
                const Wide* offset, const Wide* factor, T* dx) const override {
    ForEachChannel([&](int64_t c) {
      geometry_.ForEachElementOf(c, [&](int64_t i) {
        const Wide g = MaskedAt(i, c, x, gradient, lines);
        const Wide distance = static_cast<Wide>(x[i]) - lines.mean[c];
        dx[i] = static_cast<T>(lines.slope[c] * (g - offset[c] - distance * factor[c]));
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

  NormGeometry geometry_;
};

}  // namespace

NormGeometry ParseNormGeometry(const OpContext& context, std::string_view slot) {
  const TensorMeta& x = context.Input(slot);
  const int rank = x.shape.rank();
  SKIFF_ENFORCE(rank >= 2 && rank <= 5, kInvalidArgument, context.op().type, ": ", slot,
                " of shape ", x.shape, ": expected a rank from 2 to 5");
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

bool HasFastNormLoops(const OpContext& context) {
  const std::vector<StaticText>& images = context.def().layout_slots;
  const NormGeometry geometry = ParseNormGeometry(context, images.front());
  const Layout layout = context.Input(images.front()).layout;
  if (geometry.count() == 0 || geometry.channels == 0) return false;
  const bool first = geometry.order == ChannelOrder::kFirst;
  const bool fits = layout.is_plain() ? geometry.is_rows() || (first && geometry.pixels >= 16)
                                      : first && (geometry.block == 8 || geometry.block == 16);
  // The loops see one layout: images that differ would have to be reordered first.
  if (!fits) return false;
  const auto agrees = [&](const std::vector<SlotDef>& slots, bool is_input) {
    for (const SlotDef& slot : slots) {
      if (!(is_input ? context.HasInput(slot.name) : context.HasOutput(slot.name))) continue;
      const bool is_image = std::find(images.begin(), images.end(), slot.name) != images.end();
      const Layout given =
          is_input ? context.Input(slot.name).layout : context.Output(slot.name).layout;
      if (given != (is_image ? layout : Layout::Plain())) return false;
    }
    return true;
  };
  return agrees(context.def().inputs, true) && agrees(context.def().outputs, false);
}

template <typename T>
std::unique_ptr<NormLoops<T>> MakeFastNormLoops(const NormGeometry& geometry) {
  return geometry.is_rows() ? MakeColumnNormLoops<T>(geometry) : MakeVectorNormLoops<T>(geometry);
}

// Two float64 sums for each part and channel.
template <typename T>
int64_t PartedNormLoops<T>::scratch_bytes() const {
  return 2 * parts_.parts * parts_.channels * static_cast<int64_t>(sizeof(double));
}

template <typename T>
template <typename Visit>
void PartedNormLoops<T>::ForEachItem(const Visit& visit) const {
  const int64_t work = parts_.units / parts_.parts * parts_.values_a_unit * parts_.block;
  ParallelFor(parts_.parts * parts_.blocks, GrainOf(work), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t part = i / parts_.blocks;
      const int64_t block = i % parts_.blocks;
      visit(NormItem{parts_.Begin(part), parts_.Begin(part + 1), block},
            part * parts_.channels + block * parts_.block);
    }
  });
}

// Each item computes its own moments in one pass.
template <typename T>
void PartedNormLoops<T>::Moments(const T* x, void* scratch, double* mean, double* squares) const {
  auto* part_means = static_cast<double*>(scratch);
  double* part_squares = part_means + parts_.parts * parts_.channels;
  ForEachItem([&](const NormItem& item, int64_t at) {
    PartMoments(x, item, part_means + at, part_squares + at);
  });
  for (int64_t c = 0; c < parts_.channels; ++c) {
    NormMoments all;
    for (int64_t part = 0; part < parts_.parts; ++part) {
      const int64_t at = part * parts_.channels + c;
      const int64_t units = parts_.Begin(part + 1) - parts_.Begin(part);
      const auto count = static_cast<double>(units * parts_.values_a_unit);
      all = UnionOf(all, {count, part_means[at], part_squares[at]});
    }
    mean[c] = all.mean;
    squares[c] = all.squares;
  }
}

template <typename T>
void PartedNormLoops<T>::GradientSums(const T* x, const NormOutputGradient<T>& gradient,
                                      const NormLines<float>& lines, void* scratch, double* sums,
                                      double* products, T* masked) const {
  const int64_t channels = parts_.channels;
  auto* part_sums = static_cast<double*>(scratch);
  double* part_products = part_sums + parts_.parts * channels;
  std::fill_n(part_sums, 2 * parts_.parts * channels, 0.0);
  ForEachItem([&](const NormItem& item, int64_t at) {
    // Items share no channel of a part, so each writes its own sums.
    PartGradientSums(x, gradient, lines, item, part_sums + at, part_products + at, masked);
  });
  for (int64_t c = 0; c < channels; ++c) {
    sums[c] = products[c] = 0;
    for (int64_t part = 0; part < parts_.parts; ++part) {
      sums[c] += part_sums[part * channels + c];
      products[c] += part_products[part * channels + c];
    }
  }
}

template <typename T>
void PartedNormLoops<T>::FindPivot(const T* x, int64_t values, int64_t stride, int64_t width,
                                   float* pivot) {
  std::array<double, kMostPivots> sums;
  std::fill_n(sums.begin(), width, 0.0);
  for (int64_t i = 0; i < values; ++i) {
    const T* from = x + i * stride;
    for (int64_t c = 0; c < width; ++c) {
      sums[static_cast<size_t>(c)] += static_cast<float>(from[c]);
    }
  }
  for (int64_t c = 0; c < width; ++c) {
    pivot[c] = static_cast<float>(sums[static_cast<size_t>(c)] / static_cast<double>(values));
  }
}

template <typename T>
void PartedNormLoops<T>::CenterMoments(const float* pivot, int64_t width, int64_t count,
                                       double* means, double* squares) {
  for (int64_t c = 0; c < width; ++c) {
    const double shift = means[c] / static_cast<double>(count);
    // The sum of squares about the mean is that about the pivot less count · shift². It can't be
    // negative, but its rounding can.
    squares[c] = std::max(squares[c] - means[c] * shift, 0.0);
    means[c] = pivot[c] + shift;
  }
}

template <typename T>
std::unique_ptr<NormLoops<T>> MakePlainNormLoops(const NormGeometry& geometry) {
  return std::make_unique<PlainNormLoops<T>>(geometry);
}

#define SKIFF_NORM_LOOPS(T)                                                          \
  template std::unique_ptr<NormLoops<T>> MakePlainNormLoops<T>(const NormGeometry&); \
  template std::unique_ptr<NormLoops<T>> MakeFastNormLoops<T>(const NormGeometry&);  \
  template class PartedNormLoops<T>

template std::unique_ptr<NormLoops<double>> MakePlainNormLoops<double>(const NormGeometry&);
SKIFF_NORM_LOOPS(float);
SKIFF_NORM_LOOPS(Float16);
SKIFF_NORM_LOOPS(BFloat16);

#undef SKIFF_NORM_LOOPS

}  // namespace skiff
