// Group normalization: each group of channels of each image is an item, and items are independent
// of each other in both directions. Only the gradients of Scale and Bias sum over images. Each item
// leaves its sums by channel in the workspace, and these are added in the order of the images, so
// that results don't depend on the number of threads.
#include "operators/nn/normalization/group_normalization.h"

#include <algorithm>
#include <cmath>

#include "framework/base/element_count.h"
#include "framework/base/parallel.h"
#include "framework/op/arguments.h"
#include "operators/common/cpu/wide_rows.h"
#include "operators/common/extreme_square.h"
#include "operators/nn/normalization/row_norm.h"

namespace skiff {
namespace {

// One group of an image. With channels first, the group is contiguous and its channels are runs of
// pixels, for which row_norm.h has vectorized loops. With channels last, it is visited element by
// element.
template <typename T>
class Group {
 public:
  Group(const GroupGeometry& geometry, int64_t item)
      : geometry_(geometry),
        first_channel_(geometry.first_channel(item)),
        image_(item / geometry.groups * geometry.channels * geometry.pixels) {}

  int64_t count() const { return geometry_.count(); }
  int64_t channels() const { return geometry_.group_channels(); }

  RunMoments Moments(const T* x, double epsilon) const {
    if (is_first()) return MomentsOf(x + ChannelOffset(0), geometry_.count(), epsilon);
    RunMoments moments;
    ForEachElement([&](int64_t, int64_t at) { moments.mean += x[at]; });
    moments.mean /= static_cast<double>(std::max<int64_t>(geometry_.count(), 1));
    ForEachElement([&](int64_t, int64_t at) {
      const double distance = static_cast<double>(x[at]) - moments.mean;
      moments.squares += distance * distance;
    });
    return moments;
  }

  // In what follows, C is the type of the coefficients and of the arithmetic (row_norm.h).

  // `scale` and `bias` have a value for each channel of the group, or are nullptr.
  template <typename C>
  void Normalize(const T* x, C mean, C slope, const T* scale, const T* bias, T* y) const {
    // The loop over channels might take forever: an empty tensor may have any number of them.
    if (geometry_.pixels == 0) return;
    if (is_first()) {
      for (int64_t c = 0; c < geometry_.group_channels(); ++c) {
        const int64_t at = ChannelOffset(c);
        NormalizeRun(x + at, geometry_.pixels, mean, Scaled(slope, scale, c),
                     bias == nullptr ? C{0} : static_cast<C>(bias[c]), y + at);
      }
      return;
    }
    ForEachElement([&](int64_t c, int64_t at) {
      y[at] = static_cast<T>((static_cast<C>(x[at]) - mean) * Scaled(slope, scale, c) +
                             (bias == nullptr ? C{0} : static_cast<C>(bias[c])));
    });
  }

  // Computes the sums of dy and of dy · (x - mean) for each channel.
  template <typename C>
  void GradientSums(const T* x, const T* dy, C mean, double* sums, double* products) const {
    if (is_first()) {
      for (int64_t c = 0; c < geometry_.group_channels(); ++c) {
        const int64_t at = ChannelOffset(c);
        const RunGradientSums of_run =
            GradientSumsOf<T>(x + at, dy + at, nullptr, geometry_.pixels, mean);
        sums[c] = of_run.sum;
        products[c] = of_run.product;
      }
      return;
    }
    std::fill_n(sums, geometry_.group_channels(), 0.0);
    std::fill_n(products, geometry_.group_channels(), 0.0);
    ForEachElement([&](int64_t c, int64_t at) {
      sums[c] += static_cast<double>(dy[at]);
      products[c] += static_cast<double>(dy[at]) * (static_cast<double>(x[at]) - mean);
    });
  }

  template <typename C>
  void Gradient(const T* x, const T* dy, const T* scale, const RunGradient<C>& gradient,
                T* dx) const {
    if (is_first()) {
      for (int64_t c = 0; c < geometry_.group_channels(); ++c) {
        const int64_t at = ChannelOffset(c);
        RunGradient<C> of_channel = gradient;
        of_channel.slope = Scaled(gradient.slope, scale, c);
        GradientRow<T>(x + at, dy + at, nullptr, geometry_.pixels, of_channel, dx + at);
      }
      return;
    }
    ForEachElement([&](int64_t c, int64_t at) {
      const C distance = static_cast<C>(x[at]) - gradient.mean;
      dx[at] = static_cast<T>(static_cast<C>(dy[at]) * Scaled(gradient.slope, scale, c) -
                              distance * gradient.factor - gradient.offset);
    });
  }

 private:
  template <typename C>
  static C Scaled(C slope, const T* scale, int64_t c) {
    return scale == nullptr ? slope : slope * static_cast<C>(scale[c]);
  }

  bool is_first() const { return geometry_.order == ChannelOrder::kFirst; }
  // Returns the offset of channel c of the group, for channels first.
  int64_t ChannelOffset(int64_t c) const {
    return image_ + (first_channel_ + c) * geometry_.pixels;
  }
  // Channels last: calls visit(channel in the group, offset).
  template <typename Visit>
  void ForEachElement(const Visit& visit) const {
    // An empty tensor may have any number of pixels.
    if (geometry_.group_channels() == 0) return;
    for (int64_t pixel = 0; pixel < geometry_.pixels; ++pixel) {
      const int64_t first = image_ + pixel * geometry_.channels + first_channel_;
      for (int64_t c = 0; c < geometry_.group_channels(); ++c) visit(c, first + c);
    }
  }

  const GroupGeometry& geometry_;
  int64_t first_channel_;
  int64_t image_;
};

template <typename T>
const T* ByChannel(const T* values, int64_t channel) {
  return values == nullptr ? nullptr : values + channel;
}

// The groups of tensors of T, whose loops see WideType<T>. Where T is half, the elements of one
// group at a time lie in rows of the thread, in the order that they have in the tensor: so sums
// have the order of float32's.
template <typename T>
class WideGroups {
 public:
  using Wide = WideType<T>;

  // Each thread has `rows` rows for the elements of a group.
  WideGroups(PrepareContext& context, const GroupGeometry& geometry, int64_t rows)
      : geometry_(geometry),
        scratch_(context, MultiplyCounts(geometry.batch, geometry.groups), rows, geometry.count()) {
    if constexpr (kIsHalf<T>) {
      seen_ = {.batch = 1,
               .channels = geometry.group_channels(),
               .pixels = geometry.pixels,
               .groups = 1,
               .order = geometry.order};
    } else {
      seen_ = geometry;
    }
  }

  const GroupGeometry& geometry() const { return geometry_; }

  // Calls visit(item, the thread's rows) for each group of each image.
  template <typename Visit>
  void ForEach(const KernelContext& run, const Visit& visit) const {
    scratch_.ForEach(run, geometry_.batch * geometry_.groups, GrainOf(geometry_.count()), visit);
  }

  // What the loops see of the item, in the arrays that Read and PlaceOf return.
  Group<Wide> At(int64_t item) const { return Group<Wide>(seen_, kIsHalf<T> ? 0 : item); }

  const Wide* Read(int64_t item, const T* data, Wide* row) const {
    if constexpr (kIsHalf<T>) {
      ForEachRun(item, [&](int64_t at, int64_t first, int64_t count) {
        ReadRow(data, at, count, row + first);
      });
      return row;
    } else {
      return data;
    }
  }

  // Returns where the loops write the item, which Write then rounds; nullptr if `data` is nullptr.
  static Wide* PlaceOf(T* data, Wide* row) { return PlaceOfRow(data, 0, row); }

  void Write(int64_t item, const Wide* row, T* data) const {
    if constexpr (kIsHalf<T>) {
      ForEachRun(item, [&](int64_t at, int64_t first, int64_t count) {
        WriteRow(row + first, count, data, at);
      });
    }
  }

 private:
  // Calls visit(offset in the tensor, offset in the item, count) for each contiguous run.
  template <typename Visit>
  void ForEachRun(int64_t item, const Visit& visit) const {
    // An empty tensor may have any number of pixels.
    if (geometry_.count() == 0) return;
    const int64_t image = item / geometry_.groups * geometry_.channels * geometry_.pixels;
    const int64_t channel = geometry_.first_channel(item);
    if (geometry_.order == ChannelOrder::kFirst) {
      return visit(image + channel * geometry_.pixels, 0, geometry_.count());
    }
    const int64_t length = geometry_.group_channels();
    for (int64_t pixel = 0; pixel < geometry_.pixels; ++pixel) {
      visit(image + pixel * geometry_.channels + channel, pixel * length, length);
    }
  }

  GroupGeometry geometry_;
  GroupGeometry seen_;
  ThreadScratch<T> scratch_;
};

}  // namespace

template <typename T>
std::unique_ptr<Kernel> PrepareGroupNorm(PrepareContext& context,
                                         const GroupNormArguments& arguments) {
  using Wide = WideType<T>;
  const bool saves_variance = arguments.statistic == GroupStatistic::kVariance;
  const double epsilon = context.Attr<float>("epsilon");
  const In<T> x(context, "X");
  const In<Wide> scale(context, "Scale");
  const In<Wide> bias(context, "Bias");
  const Out<T> y(context, "Y");
  const Out<Wide> means(context, arguments.mean_slot);
  const Out<Wide> statistics(context, arguments.statistic_slot);
  const WideGroups<T> groups(context, arguments.geometry, /*rows=*/1);
  return MakeKernel([=](const KernelContext& run) {
    groups.ForEach(
        run, [&, x = x(run), scale = scale(run), bias = bias(run), y = y(run), means = means(run),
              statistics = statistics(run)](int64_t item, const WideRows<T>& rows) {
          const Group<Wide> group = groups.At(item);
          const Wide* from = groups.Read(item, x, rows[0]);
          Wide* to = groups.PlaceOf(y, rows[0]);
          const RunMoments moments = group.Moments(from, epsilon);
          const double variance =
              moments.squares / static_cast<double>(std::max<int64_t>(group.count(), 1));
          const Wide mean = static_cast<Wide>(moments.mean);
          const double slope = 1 / std::sqrt(variance + epsilon);
          if (means != nullptr) means[item] = mean;
          if (statistics != nullptr)
            statistics[item] = static_cast<Wide>(saves_variance ? variance : slope);
          const int64_t channel = groups.geometry().first_channel(item);
          const Wide* group_scale = ByChannel(scale, channel);
          const Wide* group_bias = ByChannel(bias, channel);
          if (IsExtremeSquare(variance + epsilon)) {
            group.Normalize(from, moments.mean, slope, group_scale, group_bias, to);
          } else {
            group.Normalize(from, mean, static_cast<Wide>(slope), group_scale, group_bias, to);
          }
          groups.Write(item, to, y);
        });
  });
}

namespace {

// The arrays of the gradient of one group. Those of optional arguments may be nullptr.
template <typename T>
struct GradientArrays {
  const T* x;
  const T* dy;
  const T* scale;
  T mean;
  T statistic;
  T* dx;
  // For each channel, the sums of dy and of dy · z.
  double* sums;
  double* products;
};

// Writes the sums of a group's channels and, if it is wanted, dx. `h` is 1 / deviation. C is the
// type of the coefficients that the elements are multiplied by.
template <typename T, typename C>
void DifferentiateGroup(const Group<T>& group, C mean, double h, const GradientArrays<T>& arrays) {
  // Before group.Gradient, which may overwrite dy.
  group.GradientSums(arrays.x, arrays.dy, mean, arrays.sums, arrays.products);
  double sum = 0;
  double product = 0;
  for (int64_t c = 0; c < group.channels(); ++c) {
    // The sums are over dy; those of the group are over g = dy · Scale, which is constant in a
    // channel.
    const double factor = arrays.scale == nullptr ? 1 : static_cast<double>(arrays.scale[c]);
    sum += factor * arrays.sums[c];
    product += factor * arrays.products[c];
    arrays.products[c] *= h;
  }
  if (arrays.dx == nullptr) return;
  // h · z · sum(g · z) / m = (x - mean) · h³ · sum(g · (x - mean)) / m: hence h³ in the factor.
  const auto count = static_cast<double>(std::max<int64_t>(group.count(), 1));
  group.Gradient(arrays.x, arrays.dy, arrays.scale,
                 RunGradient<C>{.mean = mean,
                                .slope = static_cast<C>(h),
                                .factor = static_cast<C>(h * h * h * product / count),
                                .offset = static_cast<C>(h * sum / count)},
                 arrays.dx);
}

// Does so with what was saved of the group, or in float64 if T may be too narrow.
template <typename T>
void DifferentiateGroup(const Group<T>& group, GroupStatistic statistic, double epsilon,
                        const GradientArrays<T>& arrays) {
  // A single element is its group's mean: Y doesn't depend on it, and the general formula would
  // leave rounding errors.
  if (group.count() == 1) return DifferentiateGroup(group, arrays.mean, 0.0, arrays);
  const auto saved = static_cast<double>(arrays.statistic);
  const bool is_variance = statistic == GroupStatistic::kVariance;
  if (!IsExtremeSquare(is_variance ? saved + epsilon : 1 / (saved * saved))) {
    const double h = is_variance ? 1 / std::sqrt(saved + epsilon) : saved;
    return DifferentiateGroup(group, arrays.mean, h, arrays);
  }
  const RunMoments moments = group.Moments(arrays.x, epsilon);
  const auto count = static_cast<double>(std::max<int64_t>(group.count(), 1));
  DifferentiateGroup(group, moments.mean, 1 / std::sqrt(moments.squares / count + epsilon), arrays);
}

// Writes the sums over images of values by image and channel; nothing if nobody wants them.
template <typename T>
void AddUpImages(const GroupGeometry& geometry, const double* values, T* totals) {
  if (totals == nullptr) return;
  for (int64_t c = 0; c < geometry.channels; ++c) {
    double total = 0;
    for (int64_t n = 0; n < geometry.batch; ++n) total += values[n * geometry.channels + c];
    totals[c] = static_cast<T>(total);
  }
}

}  // namespace

template <typename T>
std::unique_ptr<Kernel> PrepareGroupNormGrad(PrepareContext& context,
                                             const GroupNormArguments& arguments) {
  using Wide = WideType<T>;
  const GroupGeometry geometry = arguments.geometry;
  const double epsilon = context.Attr<float>("epsilon");
  const In<T> x(context, "X");
  const In<Wide> scale(context, "Scale");
  const In<Wide> mean(context, arguments.mean_slot);
  const In<Wide> statistic(context, arguments.statistic_slot);
  const In<T> gradient(context, "Y@GRAD");
  const Out<T> dx(context, "X@GRAD");
  const Out<Wide> dscale(context, "Scale@GRAD");
  const Out<Wide> dbias(context, "Bias@GRAD");
  const int64_t sum_count = MultiplyCounts(geometry.batch, geometry.channels);
  const int memory =
      context.RequestWorkspace(ByteCount(MultiplyCounts(2, sum_count), DType::kFloat64));
  const WideGroups<T> groups(context, geometry, /*rows=*/2);
  return MakeKernel([=](const KernelContext& run) {
    auto* sums = static_cast<double*>(run.workspace(memory));
    double* products = sums + sum_count;
    groups.ForEach(run, [&, x = x(run), dy = gradient(run), dx = dx(run), scale = scale(run),
                         means = mean(run),
                         statistics = statistic(run)](int64_t item, const WideRows<T>& rows) {
      const int64_t channel = geometry.first_channel(item);
      const int64_t first = item / geometry.groups * geometry.channels + channel;
      // X@GRAD may take the place of Y@GRAD.
      Wide* to = groups.PlaceOf(dx, rows[1]);
      DifferentiateGroup(groups.At(item), arguments.statistic, epsilon,
                         GradientArrays<Wide>{.x = groups.Read(item, x, rows[0]),
                                              .dy = groups.Read(item, dy, rows[1]),
                                              .scale = ByChannel(scale, channel),
                                              .mean = means[item],
                                              .statistic = statistics[item],
                                              .dx = to,
                                              .sums = sums + first,
                                              .products = products + first});
      groups.Write(item, to, dx);
    });
    AddUpImages(geometry, products, dscale(run));
    AddUpImages(geometry, sums, dbias(run));
  });
}

template std::unique_ptr<Kernel> PrepareGroupNorm<float>(PrepareContext&,
                                                         const GroupNormArguments&);
template std::unique_ptr<Kernel> PrepareGroupNorm<double>(PrepareContext&,
                                                          const GroupNormArguments&);
template std::unique_ptr<Kernel> PrepareGroupNorm<Float16>(PrepareContext&,
                                                           const GroupNormArguments&);
template std::unique_ptr<Kernel> PrepareGroupNorm<BFloat16>(PrepareContext&,
                                                            const GroupNormArguments&);
template std::unique_ptr<Kernel> PrepareGroupNormGrad<float>(PrepareContext&,
                                                             const GroupNormArguments&);
template std::unique_ptr<Kernel> PrepareGroupNormGrad<double>(PrepareContext&,
                                                              const GroupNormArguments&);
template std::unique_ptr<Kernel> PrepareGroupNormGrad<Float16>(PrepareContext&,
                                                               const GroupNormArguments&);
template std::unique_ptr<Kernel> PrepareGroupNormGrad<BFloat16>(PrepareContext&,
                                                                const GroupNormArguments&);

}  // namespace skiff
