// The kernels of batch_norm, sync_batch_norm, batch_norm_act and batch_norm_replay, and of their
// gradients.
//
// A kernel is one or two passes over the images (NormLoops) with a little arithmetic per channel
// between them. Forward: Moments reads X, then Normalize reads X and writes Y; the moments must be
// complete before the first element is normalized, so there is no single pass. Gradient:
// GradientSums reads X and Y@GRAD, then Gradient reads both again and writes X@GRAD. Statistics and
// sums are float64; the coefficients that the passes multiply by are WideType<T>, where T is the
// type of the images. Where several ranks have a batch together, moments and sums become those of
// all ranks between the passes.
//
// Arrays by channel are as long as whole blocks of channels, and 0 where a block is padded: that
// makes the passes write 0 there, as channel-blocked layouts require.
#include "operators/nn/normalization/batch_norm_kernels.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/arguments.h"
#include "operators/common/extreme_square.h"
#include "operators/common/ranks/rank_gather.h"
#include "operators/common/running_statistic.h"
#include "operators/nn/normalization/batch_norm_definition.h"
#include "operators/nn/normalization/batch_norm_passes.h"
#include "operators/nn/normalization/rank_statistics.h"

namespace skiff {
namespace {

// Does nothing if `to` is nullptr or `from`: MeanOut and VarianceOut usually are the variables of
// Mean and Variance.
template <typename T>
void CopyByChannel(const T* from, int64_t channels, T* to) {
  if (to != nullptr && to != from) std::copy_n(from, channels, to);
}

// Multiplies `slopes`, which holds 1 / sqrt(variance + epsilon), by Scale, and sets `shifts` to
// Bias. An absent Scale is 1. An absent Bias leaves the shifts at 0.
template <typename T>
void ScaleAndShift(int64_t channels, const T* scale, const T* bias, T* slopes, T* shifts) {
  for (int64_t c = 0; c < channels; ++c) {
    if (scale != nullptr) slopes[c] *= scale[c];
    if (bias != nullptr) shifts[c] = bias[c];
  }
}

// Returns whether the op is batch_norm_act, which may add Z and rectifies.
bool IsFused(const OpContext& context) { return context.HasAttr("act_type"); }

int64_t StorageBytes(const TensorMeta& meta) {
  return ByteCount(StorageElements(meta.shape, meta.layout), meta.dtype);
}

// Calls repeat(c) for the channels that are extreme, which are none as a rule.
template <typename IsExtreme, typename Repeat>
void ForExtremeChannels(const NormGeometry& geometry, const IsExtreme& is_extreme,
                        const Repeat& repeat) {
  bool any = false;
  for (int64_t c = 0; c < geometry.channels; ++c) any = any || is_extreme(c);
  if (!any) return;
  ParallelFor(geometry.channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      if (is_extreme(c)) repeat(c);
    }
  });
}

template <typename T>
class BatchNormKernel final : public Kernel {
  using Wide = WideType<T>;

 public:
  BatchNormKernel(PrepareContext& context, MakeNormLoops<T> make_loops)
      : geometry_(ParseNormGeometry(context)),
        loops_(make_loops(geometry_)),
        epsilon_(context.Attr<float>("epsilon")),
        momentum_(context.Attr<float>("momentum")),
        global_(UsesGlobalStatistics(context)),
        rectifies_(IsFused(context)),
        x_(context, "X"),
        scale_(context, "Scale"),
        bias_(context, "Bias"),
        mean_(context, "Mean"),
        variance_(context, "Variance"),
        momentum_tensor_(context, "MomentumTensor"),
        y_(context, "Y"),
        mean_out_(context, "MeanOut"),
        variance_out_(context, "VarianceOut"),
        saved_mean_(context, "SavedMean"),
        saved_variance_(context, "SavedVariance") {
    if (rectifies_) z_ = In<T>(context, "Z");
    if (!context.def().batch_moments.empty()) {
      batch_mean_ = Out<double>(context, "BatchMean");
      batch_variance_ = Out<double>(context, "BatchVariance");
    }
    if (context.def().collective && !global_) ranks_.emplace(context, geometry_.channels);
    const int64_t channels = geometry_.padded_channels();
    scratch_ = context.RequestWorkspace(loops_->scratch_bytes());
    moments_ = context.RequestWorkspace(2 * channels * static_cast<int64_t>(sizeof(double)));
    lines_ = context.RequestWorkspace(3 * channels * static_cast<int64_t>(sizeof(Wide)));
  }

  void Run(const KernelContext& run) override {
    auto* mean = static_cast<double*>(run.workspace(moments_));
    double* squares = mean + geometry_.padded_channels();
    const T* x = x_(run);
    auto count = static_cast<double>(geometry_.count());
    if (!global_ && count > 0) TakeMoments(x, run.workspace(scratch_), mean, squares);
    if (ranks_) count = TakeMomentsOfRanks(run, mean, squares);
    // A single value has no variance. Fluid passes it on unchanged: slope 1 and shift 0.
    const bool unchanged = !global_ && count <= 1;
    auto* means = static_cast<Wide*>(run.workspace(lines_));
    Wide* slopes = means + geometry_.padded_channels();
    Wide* shifts = slopes + geometry_.padded_channels();
    std::fill_n(means, 3 * geometry_.padded_channels(), Wide{0});
    if (unchanged) {
      KeepRunningStatistics(run);
    } else if (global_) {
      TakeGlobalStatistics(run, means, slopes);
    } else {
      TakeBatchStatistics(run, {mean, squares, count}, means, slopes);
    }
    // Before ScaleAndShift: `slopes` still holds 1 / sqrt(variance + epsilon), which is
    // SavedVariance.
    CopyByChannel(means, geometry_.channels, saved_mean_(run));
    CopyByChannel(slopes, geometry_.channels, saved_variance_(run));
    if (unchanged) {
      std::fill_n(slopes, geometry_.channels, Wide{1});
    } else {
      ScaleAndShift(geometry_.channels, scale_(run), bias_(run), slopes, shifts);
    }
    loops_->Normalize(x, z_(run), {means, slopes, shifts}, rectifies_, y_(run));
  }

 private:
  // By channel; `count` values each.
  struct Moments {
    const double* mean;
    const double* squares;
    double count;
  };

  void TakeMoments(const T* x, void* scratch, double* mean, double* squares) const {
    loops_->Moments(x, scratch, mean, squares);
    if constexpr (std::is_same_v<Wide, float>) {
      const auto is_extreme = [=, this](int64_t c) {
        const double variance = squares[c] / static_cast<double>(geometry_.count());
        return IsExtremeSquare(variance + epsilon_);
      };
      ForExtremeChannels(geometry_, is_extreme, [&](int64_t c) {
        MomentsOfChannel(geometry_, c, x, &mean[c], &squares[c]);
      });
    }
  }

  // Turns the moments of this rank into those of all ranks. Returns the number of values.
  double TakeMomentsOfRanks(const KernelContext& run, double* mean, double* squares) {
    NormMoments* own = ranks_->Own(run);
    const auto count = static_cast<double>(geometry_.count());
    for (int64_t c = 0; c < geometry_.channels; ++c) {
      own[c] = count > 0 ? NormMoments{count, mean[c], squares[c]} : NormMoments{};
    }
    double values = 0;
    ranks_->Run(run, [&](const GatheredItems<NormMoments>& part) {
      for (int64_t i = 0; i < part.count; ++i) {
        const NormMoments all = OverRanks(part, i);
        mean[part.begin + i] = all.mean;
        squares[part.begin + i] = all.squares;
        values = all.count;
      }
    });
    return values;
  }

  // Puts means and 1 / sqrt(variance + epsilon) into the arrays.
  void TakeGlobalStatistics(const KernelContext& run, Wide* means, Wide* inverses) const {
    const Wide* mean = mean_(run);
    const Wide* variance = variance_(run);
    for (int64_t c = 0; c < geometry_.channels; ++c) {
      means[c] = mean[c];
      inverses[c] = static_cast<Wide>(1.0 / std::sqrt(static_cast<double>(variance[c]) + epsilon_));
    }
    KeepRunningStatistics(run);
  }

  void TakeBatchStatistics(const KernelContext& run, const Moments& of, Wide* means,
                           Wide* inverses) const {
    const Wide* old_mean = mean_(run);
    const Wide* old_variance = variance_(run);
    Wide* new_mean = mean_out_(run);
    Wide* new_variance = variance_out_(run);
    // The running statistics are updated with the float64 moments, not with the rounded ones that Y
    // is computed from. Each old value is read before the new one is written, as MeanOut may be
    // Mean.
    const double keep = momentum_tensor_.is_there() ? momentum_tensor_(run)[0] : momentum_;
    for (int64_t c = 0; c < geometry_.channels; ++c) {
      const double variance = of.squares[c] / of.count;
      means[c] = static_cast<Wide>(of.mean[c]);
      inverses[c] = static_cast<Wide>(1.0 / std::sqrt(variance + epsilon_));
      if (new_mean != nullptr) new_mean[c] = UpdatedStatistic(keep, old_mean[c], of.mean[c]);
      if (new_variance != nullptr) {
        new_variance[c] = UpdatedStatistic(keep, old_variance[c], variance);
      }
      if (batch_mean_.is_there()) batch_mean_(run)[c] = of.mean[c];
      if (batch_variance_.is_there()) batch_variance_(run)[c] = variance;
    }
  }

  void KeepRunningStatistics(const KernelContext& run) const {
    CopyByChannel(mean_(run), geometry_.channels, mean_out_(run));
    CopyByChannel(variance_(run), geometry_.channels, variance_out_(run));
    if (batch_mean_.is_there()) std::fill_n(batch_mean_(run), geometry_.channels, 0.0);
    if (batch_variance_.is_there()) {
      std::fill_n(batch_variance_(run), geometry_.channels, kNoBatchVariance);
    }
  }

  NormGeometry geometry_;
  std::unique_ptr<NormLoops<T>> loops_;
  double epsilon_;
  double momentum_;
  bool global_;
  bool rectifies_;
  In<T> x_;
  In<T> z_;  // Only batch_norm_act has Z.
  In<Wide> scale_;
  In<Wide> bias_;
  In<Wide> mean_;
  In<Wide> variance_;
  In<Wide> momentum_tensor_;
  Out<T> y_;
  Out<Wide> mean_out_;
  Out<Wide> variance_out_;
  Out<Wide> saved_mean_;
  Out<Wide> saved_variance_;
  Out<double> batch_mean_;
  Out<double> batch_variance_;
  std::optional<RankGather<NormMoments>> ranks_;  // if the batches of all ranks are one
  int scratch_ = -1;
  int moments_ = -1;
  int lines_ = -1;
};

template <typename T>
class BatchNormGradKernel final : public Kernel {
  using Wide = WideType<T>;

 public:
  BatchNormGradKernel(PrepareContext& context, MakeNormLoops<T> make_loops)
      : geometry_(ParseNormGeometry(context)),
        loops_(make_loops(geometry_)),
        epsilon_(context.Attr<float>("epsilon")),
        global_(UsesGlobalStatistics(context)),
        x_(context, "X"),
        scale_(context, "Scale"),
        bias_(context, "Bias"),
        mean_(context, global_ ? "MeanOut" : "SavedMean"),
        variance_(context, global_ ? "VarianceOut" : "SavedVariance"),
        y_gradient_(context, "Y@GRAD"),
        x_gradient_(context, "X@GRAD"),
        scale_gradient_(context, "Scale@GRAD"),
        bias_gradient_(context, "Bias@GRAD") {
    SKIFF_ENFORCE(mean_.is_there() && variance_.is_there(), kInvalidArgument, context.op().type,
                  ": inputs ", global_ ? "MeanOut and VarianceOut" : "SavedMean and SavedVariance",
                  " are missing");
    if (IsFused(context)) {
      y_ = In<T>(context, "Y");
      z_gradient_ = Out<T>(context, "Z@GRAD");
      mask_ = y_.is_there() ? NormMask::kOutput : NormMask::kInput;
    }
    // Under kOutput the first pass always writes the masked gradient. Usually it goes to Z@GRAD or
    // to X@GRAD; if both are absent, to a workspace.
    if (mask_ == NormMask::kOutput && !z_gradient_.is_there() && !x_gradient_.is_there()) {
      masked_ = context.RequestWorkspace(StorageBytes(context.Input("X")));
    }
    const int64_t channels = geometry_.padded_channels();
    if (context.def().collective && !global_) ranks_.emplace(context, geometry_.channels);
    scratch_ = context.RequestWorkspace(loops_->scratch_bytes());
    sums_ = context.RequestWorkspace(sum_lines() * channels * static_cast<int64_t>(sizeof(double)));
    lines_ = context.RequestWorkspace(kLines * channels * static_cast<int64_t>(sizeof(Wide)));
  }

  void Run(const KernelContext& run) override {
    const int64_t channels = geometry_.padded_channels();
    auto* sums = static_cast<double*>(run.workspace(sums_));
    double* products = sums + channels;
    std::fill_n(sums, sum_lines() * channels, 0.0);
    auto* lines = static_cast<Wide*>(run.workspace(lines_));
    std::fill_n(lines, kLines * channels, Wide{0});
    const Lines by_channel{lines,
                           lines + channels,
                           lines + 2 * channels,
                           lines + 3 * channels,
                           lines + 4 * channels,
                           lines + 5 * channels};
    const auto count = static_cast<double>(geometry_.count());
    // With several ranks, what the forward op saved serves until all values have been counted.
    TakeStatistics(run, !ranks_ && IsUnchanged(count), by_channel);
    const NormLines<Wide> normalize{by_channel.mean, by_channel.slope, by_channel.shift};
    const T* x = x_(run);
    NormOutputGradient<T> gradient{y_gradient_(run), mask_, y_(run)};
    T* masked = MaskedGradient(run);
    if (geometry_.count() > 0) {
      loops_->GradientSums(x, gradient, normalize, run.workspace(scratch_), sums, products, masked);
    }
    // The first pass stored g, perhaps over Y@GRAD (in_place). All others must read it from there,
    // without the mask.
    if (mask_ == NormMask::kOutput) gradient = {masked, NormMask::kNone, nullptr};
    if constexpr (std::is_same_v<Wide, float>) {
      RepeatExtremeSums(x, gradient, normalize, by_channel.inverse, sums, products);
    }
    Sums of_batch{sums, products, count};
    if (ranks_) of_batch = SumOverRanks(run, sums, products);
    if (IsUnchanged(of_batch.count)) {
      // Y was X (plus Z), whatever Scale and Bias: their gradients are 0, and X@GRAD is Y@GRAD.
      std::fill_n(sums, sum_lines() * channels, 0.0);
      PassUnchanged(by_channel);
    }
    WriteParameterGradients(run, by_channel, sums, products);
    if (!x_gradient_.is_there()) return;
    PrepareCorrections(of_batch, by_channel);
    loops_->Gradient(x, gradient, normalize, by_channel.offset, by_channel.factor,
                     x_gradient_(run));
  }

 private:
  // Arrays by channel.
  static constexpr int64_t kLines = 6;
  struct Lines {
    Wide* mean;
    Wide* inverse;  // 1 / sqrt(variance + epsilon)
    Wide* slope;
    Wide* shift;
    Wide* offset;
    Wide* factor;
  };

  // Lines of sums by channel: two of this rank, then two of all ranks.
  int64_t sum_lines() const { return ranks_ ? 4 : 2; }
  // Of `count` values each.
  struct Sums {
    const double* sums;
    const double* products;
    double count;
  };

  bool IsUnchanged(double count) const { return !global_ && count <= 1; }

  void PassUnchanged(const Lines& lines) const {
    std::fill_n(lines.mean, geometry_.channels, Wide{0});
    std::fill_n(lines.slope, geometry_.channels, Wide{1});
  }

  // Returns the sums of all ranks, which it puts behind those of this rank.
  Sums SumOverRanks(const KernelContext& run, const double* sums, const double* products) {
    NormSums* own = ranks_->Own(run);
    const auto count = static_cast<double>(geometry_.count());
    for (int64_t c = 0; c < geometry_.channels; ++c) own[c] = {count, sums[c], products[c]};
    double* all_sums = static_cast<double*>(run.workspace(sums_)) + 2 * geometry_.padded_channels();
    double* all_products = all_sums + geometry_.padded_channels();
    double values = 0;
    ranks_->Run(run, [&](const GatheredItems<NormSums>& part) {
      for (int64_t i = 0; i < part.count; ++i) {
        const NormSums all = OverRanks(part, i);
        all_sums[part.begin + i] = all.gradients;
        all_products[part.begin + i] = all.products;
        values = all.count;
      }
    });
    return {all_sums, all_products, values};
  }

  // Returns where the first pass writes the masked gradient, or nullptr if it doesn't. X@GRAD
  // serves until the second pass overwrites it, element by element.
  T* MaskedGradient(const KernelContext& run) const {
    if (mask_ != NormMask::kOutput) return nullptr;
    if (z_gradient_.is_there()) return z_gradient_(run);
    if (x_gradient_.is_there()) return x_gradient_(run);
    return static_cast<T*>(run.workspace(masked_));
  }

  void TakeStatistics(const KernelContext& run, bool unchanged, const Lines& lines) const {
    if (unchanged) return PassUnchanged(lines);
    const Wide* mean = mean_(run);
    const Wide* variance = variance_(run);
    for (int64_t c = 0; c < geometry_.channels; ++c) {
      lines.mean[c] = mean[c];
      lines.inverse[c] =
          global_ ? static_cast<Wide>(1.0 / std::sqrt(static_cast<double>(variance[c]) + epsilon_))
                  : variance[c];
    }
    // SavedVariance already is 1 / sqrt(variance + epsilon). With running statistics, the same
    // expression as in the forward pass makes it, so that the sign of Y comes out the same.
    std::copy_n(lines.inverse, geometry_.channels, lines.slope);
    // Only kInput, which computes the sign of Y again, needs the shifts. For batch_norm_grad, Bias
    // is shape_only, and its data may be gone.
    ScaleAndShift(geometry_.channels, scale_(run), mask_ == NormMask::kInput ? bias_(run) : nullptr,
                  lines.slope, lines.shift);
  }

  // Computes the sums of channels again that float32 can't hold.
  void RepeatExtremeSums(const T* x, const NormOutputGradient<T>& gradient,
                         const NormLines<Wide>& normalize, const Wide* inverses, double* sums,
                         double* products) const {
    const auto is_extreme = [=](int64_t c) {
      const double inverse = inverses[c];
      return !std::isfinite(sums[c] + products[c]) || IsExtremeSquare(inverse * inverse);
    };
    ForExtremeChannels(geometry_, is_extreme, [&](int64_t c) {
      GradientSumsOfChannel<T>(geometry_, c, x, gradient, normalize, &sums[c], &products[c],
                               nullptr);
    });
  }

  void WriteParameterGradients(const KernelContext& run, const Lines& lines, const double* sums,
                               const double* products) const {
    Wide* scale_gradient = scale_gradient_(run);
    Wide* bias_gradient = bias_gradient_(run);
    for (int64_t c = 0; c < geometry_.channels; ++c) {
      if (scale_gradient != nullptr)
        scale_gradient[c] = static_cast<Wide>(products[c] * lines.inverse[c]);
      if (bias_gradient != nullptr) bias_gradient[c] = static_cast<Wide>(sums[c]);
    }
  }

  // Sets the two terms by which the statistics' own dependence on X changes the gradient: `offset`
  // is the mean of g, and `factor` times (x - mean) is z times the mean of g · z. Running
  // statistics don't depend on X, so both stay 0.
  void PrepareCorrections(const Sums& of, const Lines& lines) const {
    if (global_ || of.count == 0) return;
    for (int64_t c = 0; c < geometry_.channels; ++c) {
      const double inverse = lines.inverse[c];
      lines.offset[c] = static_cast<Wide>(of.sums[c] / of.count);
      lines.factor[c] = static_cast<Wide>(inverse * inverse * of.products[c] / of.count);
    }
  }

  NormGeometry geometry_;
  std::unique_ptr<NormLoops<T>> loops_;
  double epsilon_;
  bool global_;
  NormMask mask_ = NormMask::kNone;
  In<T> x_;
  In<T> y_;  // Only batch_norm_act_grad has Y and Z@GRAD.
  In<Wide> scale_;
  In<Wide> bias_;
  In<Wide> mean_;
  In<Wide> variance_;
  In<T> y_gradient_;
  Out<T> x_gradient_;
  Out<Wide> scale_gradient_;
  Out<Wide> bias_gradient_;
  Out<T> z_gradient_;
  std::optional<RankGather<NormSums>> ranks_;  // if the batches of all ranks are one
  int masked_ = -1;
  int scratch_ = -1;
  int sums_ = -1;
  int lines_ = -1;
};

// Returns a kernel that recomputes Y of batch_norm or batch_norm_act. The kernel must round as
// BatchNormKernel does: it reads the statistics that Y was computed from and runs the same pass
// with the same coefficients.
template <typename T>
std::unique_ptr<Kernel> PrepareBatchNormReplay(PrepareContext& context,
                                               MakeNormLoops<T> make_loops) {
  using Wide = WideType<T>;
  const NormGeometry geometry = ParseNormGeometry(context);
  std::unique_ptr<NormLoops<T>> loops = make_loops(geometry);
  const bool unchanged = !UsesGlobalStatistics(context) && geometry.count() <= 1;
  const bool rectifies = context.Attr<std::string>("act_type") == "relu";
  const In<T> x(context, "X");
  const In<T> z(context, "Z");
  const In<Wide> scale(context, "Scale");
  const In<Wide> bias(context, "Bias");
  const In<Wide> saved_mean(context, "SavedMean");
  const In<Wide> saved_variance(context, "SavedVariance");
  const Out<T> y(context, "Y");
  const int lines =
      context.RequestWorkspace(3 * geometry.padded_channels() * static_cast<int64_t>(sizeof(Wide)));
  return MakeKernel([=, loops = std::move(loops)](const KernelContext& run) {
    auto* means = static_cast<Wide*>(run.workspace(lines));
    Wide* slopes = means + geometry.padded_channels();
    Wide* shifts = slopes + geometry.padded_channels();
    std::fill_n(means, 3 * geometry.padded_channels(), Wide{0});
    if (unchanged) {
      std::fill_n(slopes, geometry.channels, Wide{1});
    } else {
      std::copy_n(saved_mean(run), geometry.channels, means);
      std::copy_n(saved_variance(run), geometry.channels, slopes);
      ScaleAndShift(geometry.channels, scale(run), bias(run), slopes, shifts);
    }
    loops->Normalize(x(run), z(run), {means, slopes, shifts}, rectifies, y(run));
  });
}

template <typename T>
std::unique_ptr<Kernel> MakeBatchNormKernel(PrepareContext& context, MakeNormLoops<T> make_loops) {
  return std::make_unique<BatchNormKernel<T>>(context, make_loops);
}

template <typename T>
std::unique_ptr<Kernel> MakeBatchNormGradKernel(PrepareContext& context,
                                                MakeNormLoops<T> make_loops) {
  return std::make_unique<BatchNormGradKernel<T>>(context, make_loops);
}

}  // namespace

void AddBatchNormKernels(OpRegistry& registry, std::string_view type) {
  AddNormKernels(registry, type, [](PrepareContext& context, auto make_loops) {
    return MakeBatchNormKernel(context, make_loops);
  });
  AddNormKernels(registry, StrCat(type, "_grad"), [](PrepareContext& context, auto make_loops) {
    return MakeBatchNormGradKernel(context, make_loops);
  });
}

void AddBatchNormReplayKernels(OpRegistry& registry, std::string_view type) {
  AddNormKernels(registry, type, [](PrepareContext& context, auto make_loops) {
    return PrepareBatchNormReplay(context, make_loops);
  });
}

}  // namespace skiff
