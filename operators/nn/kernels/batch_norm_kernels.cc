// The kernels of batch_norm, batch_norm_act and batch_norm_replay, and of their gradients.
//
// A kernel is one or two passes over the images (NormLoops) with a little arithmetic per channel
// between them. Forward: Moments reads X, then Normalize reads X and writes Y; the moments must be
// complete before the first element is normalized, so there is no single pass. Gradient:
// GradientSums reads X and Y@GRAD, then Gradient reads both again and writes X@GRAD. Statistics and
// sums are float64; the coefficients that the passes multiply by are T.
//
// Arrays by channel are as long as whole blocks of channels, and 0 where a block is padded: that
// makes the passes write 0 there, as channel-blocked layouts require.
#include "operators/nn/kernels/batch_norm_kernels.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <type_traits>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "operators/common/extreme_square.h"
#include "operators/nn/kernels/batch_norm_definition.h"
#include "operators/nn/kernels/batch_norm_passes.h"
#include "operators/nn/kernels/norm_arguments.h"

namespace skiff {
namespace {

// MeanOut and VarianceOut usually are the variables of Mean and Variance: then there is nothing to
// do.
template <typename T>
void CopyByChannel(const T* from, int64_t channels, T* to) {
  if (from != to) std::copy_n(from, channels, to);
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
 public:
  BatchNormKernel(PrepareContext& context, MakeNormLoops<T> make_loops)
      : geometry_(ParseNormGeometry(context)),
        loops_(make_loops(geometry_)),
        epsilon_(context.Attr<float>("epsilon")),
        momentum_(context.Attr<float>("momentum")),
        global_(UsesGlobalStatistics(context)),
        x_(context.InputIndex("X")),
        scale_(context.InputIndex("Scale")),
        bias_(context.InputIndex("Bias")),
        mean_(context.InputIndex("Mean")),
        variance_(context.InputIndex("Variance")),
        momentum_tensor_(context.InputIndex("MomentumTensor")),
        y_(context.OutputIndex("Y")),
        mean_out_(context.OutputIndex("MeanOut")),
        variance_out_(context.OutputIndex("VarianceOut")),
        saved_mean_(context.OutputIndex("SavedMean")),
        saved_variance_(context.OutputIndex("SavedVariance")) {
    if (IsFused(context)) z_ = context.InputIndex("Z");
    rectifies_ = IsFused(context);
    const int64_t channels = geometry_.padded_channels();
    scratch_ = context.RequestWorkspace(loops_->scratch_bytes());
    moments_ = context.RequestWorkspace(2 * channels * static_cast<int64_t>(sizeof(double)));
    lines_ = context.RequestWorkspace(3 * channels * static_cast<int64_t>(sizeof(T)));
  }

  void Run(const KernelContext& run) override {
    auto* mean = static_cast<double*>(run.workspace(moments_));
    double* squares = mean + geometry_.padded_channels();
    const T* x = run.input(x_).template data<T>();
    // A single value has no variance. Fluid passes it on unchanged: slope 1 and shift 0.
    const bool unchanged = !global_ && geometry_.count() <= 1;
    if (!global_ && !unchanged) TakeMoments(x, run.workspace(scratch_), mean, squares);
    auto* means = static_cast<T*>(run.workspace(lines_));
    T* slopes = means + geometry_.padded_channels();
    T* shifts = slopes + geometry_.padded_channels();
    std::fill_n(means, 3 * geometry_.padded_channels(), T{0});
    if (unchanged) {
      KeepRunningStatistics(run);
    } else if (global_) {
      TakeGlobalStatistics(run, means, slopes);
    } else {
      TakeBatchStatistics(run, mean, squares, means, slopes);
    }
    // Before ScaleAndShift: `slopes` still holds 1 / sqrt(variance + epsilon), which is
    // SavedVariance.
    SaveStatistics(run, means, slopes);
    if (unchanged) {
      std::fill_n(slopes, geometry_.channels, T{1});
    } else {
      ScaleAndShift(geometry_.channels, InputData<T>(run, scale_), InputData<T>(run, bias_), slopes,
                    shifts);
    }
    loops_->Normalize(x, InputData<T>(run, z_), {means, slopes, shifts}, rectifies_,
                      run.output(y_).template data<T>());
  }

 private:
  void TakeMoments(const T* x, void* scratch, double* mean, double* squares) const {
    loops_->Moments(x, scratch, mean, squares);
    if constexpr (std::is_same_v<T, float>) {
      const auto is_extreme = [=, this](int64_t c) {
        const double variance = squares[c] / static_cast<double>(geometry_.count());
        return IsExtremeSquare(variance + epsilon_);
      };
      ForExtremeChannels(geometry_, is_extreme, [&](int64_t c) {
        MomentsOfChannel(geometry_, c, x, &mean[c], &squares[c]);
      });
    }
  }

  // Puts means and 1 / sqrt(variance + epsilon) into the arrays.
  void TakeGlobalStatistics(const KernelContext& run, T* means, T* inverses) const {
    const T* mean = InputData<T>(run, mean_);
    const T* variance = InputData<T>(run, variance_);
    for (int64_t c = 0; c < geometry_.channels; ++c) {
      means[c] = mean[c];
      inverses[c] = static_cast<T>(1.0 / std::sqrt(static_cast<double>(variance[c]) + epsilon_));
    }
    KeepRunningStatistics(run);
  }

  void TakeBatchStatistics(const KernelContext& run, const double* mean, const double* squares,
                           T* means, T* inverses) const {
    const T* old_mean = InputData<T>(run, mean_);
    const T* old_variance = InputData<T>(run, variance_);
    T* new_mean = OutputData<T>(run, mean_out_);
    T* new_variance = OutputData<T>(run, variance_out_);
    // The running statistics are updated with the float64 moments, not with the rounded ones that Y
    // is computed from. Each old value is read before the new one is written, as MeanOut may be
    // Mean.
    const double keep =
        momentum_tensor_ < 0 ? momentum_ : run.input(momentum_tensor_).template data<T>()[0];
    for (int64_t c = 0; c < geometry_.channels; ++c) {
      const double variance = squares[c] / static_cast<double>(geometry_.count());
      means[c] = static_cast<T>(mean[c]);
      inverses[c] = static_cast<T>(1.0 / std::sqrt(variance + epsilon_));
      if (new_mean != nullptr)
        new_mean[c] = static_cast<T>(keep * old_mean[c] + (1 - keep) * mean[c]);
      if (new_variance != nullptr)
        new_variance[c] = static_cast<T>(keep * old_variance[c] + (1 - keep) * variance);
    }
  }

  void KeepRunningStatistics(const KernelContext& run) const {
    if (mean_out_ >= 0)
      CopyByChannel(InputData<T>(run, mean_), geometry_.channels, OutputData<T>(run, mean_out_));
    if (variance_out_ >= 0) {
      CopyByChannel(InputData<T>(run, variance_), geometry_.channels,
                    OutputData<T>(run, variance_out_));
    }
  }

  void SaveStatistics(const KernelContext& run, const T* means, const T* inverses) const {
    if (saved_mean_ >= 0) std::copy_n(means, geometry_.channels, OutputData<T>(run, saved_mean_));
    if (saved_variance_ >= 0)
      std::copy_n(inverses, geometry_.channels, OutputData<T>(run, saved_variance_));
  }

  NormGeometry geometry_;
  std::unique_ptr<NormLoops<T>> loops_;
  double epsilon_;
  double momentum_;
  bool global_;
  bool rectifies_ = false;
  int x_;
  int z_ = -1;
  int scale_;
  int bias_;
  int mean_;
  int variance_;
  int momentum_tensor_;
  int y_;
  int mean_out_;
  int variance_out_;
  int saved_mean_;
  int saved_variance_;
  int scratch_ = -1;
  int moments_ = -1;
  int lines_ = -1;
};

template <typename T>
class BatchNormGradKernel final : public Kernel {
 public:
  BatchNormGradKernel(PrepareContext& context, MakeNormLoops<T> make_loops)
      : geometry_(ParseNormGeometry(context)),
        loops_(make_loops(geometry_)),
        epsilon_(context.Attr<float>("epsilon")),
        global_(UsesGlobalStatistics(context)),
        x_(context.InputIndex("X")),
        scale_(context.InputIndex("Scale")),
        bias_(context.InputIndex("Bias")),
        mean_(context.InputIndex(global_ ? "MeanOut" : "SavedMean")),
        variance_(context.InputIndex(global_ ? "VarianceOut" : "SavedVariance")),
        y_gradient_(context.InputIndex("Y@GRAD")),
        x_gradient_(context.OutputIndex("X@GRAD")),
        scale_gradient_(context.OutputIndex("Scale@GRAD")),
        bias_gradient_(context.OutputIndex("Bias@GRAD")) {
    SKIFF_ENFORCE(mean_ >= 0 && variance_ >= 0, kInvalidArgument, context.op().type, ": inputs ",
                  global_ ? "MeanOut and VarianceOut" : "SavedMean and SavedVariance",
                  " are missing");
    if (IsFused(context)) {
      y_ = context.InputIndex("Y");
      z_gradient_ = context.OutputIndex("Z@GRAD");
      mask_ = y_ < 0 ? NormMask::kInput : NormMask::kOutput;
    }
    // Under kOutput the first pass always writes the masked gradient. Usually it goes to Z@GRAD or
    // to X@GRAD; if both are absent, to a workspace.
    if (mask_ == NormMask::kOutput && z_gradient_ < 0 && x_gradient_ < 0) {
      masked_ = context.RequestWorkspace(StorageBytes(context.Input("X")));
    }
    const int64_t channels = geometry_.padded_channels();
    scratch_ = context.RequestWorkspace(loops_->scratch_bytes());
    sums_ = context.RequestWorkspace(2 * channels * static_cast<int64_t>(sizeof(double)));
    lines_ = context.RequestWorkspace(kLines * channels * static_cast<int64_t>(sizeof(T)));
  }

  void Run(const KernelContext& run) override {
    const int64_t channels = geometry_.padded_channels();
    auto* sums = static_cast<double*>(run.workspace(sums_));
    double* products = sums + channels;
    std::fill_n(sums, 2 * channels, 0.0);
    const bool unchanged = !global_ && geometry_.count() <= 1;
    auto* lines = static_cast<T*>(run.workspace(lines_));
    std::fill_n(lines, kLines * channels, T{0});
    const Lines by_channel{lines,
                           lines + channels,
                           lines + 2 * channels,
                           lines + 3 * channels,
                           lines + 4 * channels,
                           lines + 5 * channels};
    TakeStatistics(run, unchanged, by_channel);
    const NormLines<T> normalize{by_channel.mean, by_channel.slope, by_channel.shift};
    const T* x = run.input(x_).template data<T>();
    NormOutputGradient<T> gradient{run.input(y_gradient_).template data<T>(), mask_,
                                   InputData<T>(run, y_)};
    T* masked = MaskedGradient(run);
    if (geometry_.count() > 0) {
      loops_->GradientSums(x, gradient, normalize, run.workspace(scratch_), sums, products, masked);
    }
    // The first pass stored g, perhaps over Y@GRAD (in_place). All others must read it from there,
    // without the mask.
    if (mask_ == NormMask::kOutput) gradient = {masked, NormMask::kNone, nullptr};
    if constexpr (std::is_same_v<T, float>) {
      RepeatExtremeSums(x, gradient, normalize, by_channel.inverse, sums, products);
    }
    // Y was X (plus Z), whatever Scale and Bias: their gradients are 0, and X@GRAD is Y@GRAD.
    if (unchanged) std::fill_n(sums, 2 * channels, 0.0);
    WriteParameterGradients(run, by_channel, sums, products);
    if (x_gradient_ < 0) return;
    PrepareCorrections(sums, products, by_channel);
    loops_->Gradient(x, gradient, normalize, by_channel.offset, by_channel.factor,
                     run.output(x_gradient_).template data<T>());
  }

 private:
  // Arrays by channel.
  static constexpr int64_t kLines = 6;
  struct Lines {
    T* mean;
    T* inverse;  // 1 / sqrt(variance + epsilon)
    T* slope;
    T* shift;
    T* offset;
    T* factor;
  };

  // Returns where the first pass writes the masked gradient, or nullptr if it doesn't. X@GRAD
  // serves until the second pass overwrites it, element by element.
  T* MaskedGradient(const KernelContext& run) const {
    if (mask_ != NormMask::kOutput) return nullptr;
    if (z_gradient_ >= 0) return OutputData<T>(run, z_gradient_);
    if (x_gradient_ >= 0) return OutputData<T>(run, x_gradient_);
    return static_cast<T*>(run.workspace(masked_));
  }

  void TakeStatistics(const KernelContext& run, bool unchanged, const Lines& lines) const {
    if (unchanged) {
      std::fill_n(lines.slope, geometry_.channels, T{1});
      return;
    }
    const T* mean = InputData<T>(run, mean_);
    const T* variance = InputData<T>(run, variance_);
    for (int64_t c = 0; c < geometry_.channels; ++c) {
      lines.mean[c] = mean[c];
      lines.inverse[c] =
          global_ ? static_cast<T>(1.0 / std::sqrt(static_cast<double>(variance[c]) + epsilon_))
                  : variance[c];
    }
    // SavedVariance already is 1 / sqrt(variance + epsilon). With running statistics, the same
    // expression as in the forward pass makes it, so that the sign of Y comes out the same.
    std::copy_n(lines.inverse, geometry_.channels, lines.slope);
    // Only kInput, which computes the sign of Y again, needs the shifts. For batch_norm_grad, Bias
    // is shape_only, and its data may be gone.
    ScaleAndShift(geometry_.channels, InputData<T>(run, scale_),
                  mask_ == NormMask::kInput ? InputData<T>(run, bias_) : nullptr, lines.slope,
                  lines.shift);
  }

  // Computes the sums of channels again that float32 can't hold.
  void RepeatExtremeSums(const T* x, const NormOutputGradient<T>& gradient,
                         const NormLines<T>& normalize, const T* inverses, double* sums,
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
    T* scale_gradient = OutputData<T>(run, scale_gradient_);
    T* bias_gradient = OutputData<T>(run, bias_gradient_);
    for (int64_t c = 0; c < geometry_.channels; ++c) {
      if (scale_gradient != nullptr)
        scale_gradient[c] = static_cast<T>(products[c] * lines.inverse[c]);
      if (bias_gradient != nullptr) bias_gradient[c] = static_cast<T>(sums[c]);
    }
  }

  // Sets the two terms by which the statistics' own dependence on X changes the gradient: `offset`
  // is the mean of g, and `factor` times (x - mean) is z times the mean of g · z. Running
  // statistics don't depend on X, so both stay 0.
  void PrepareCorrections(const double* sums, const double* products, const Lines& lines) const {
    const auto count = static_cast<double>(geometry_.count());
    if (global_ || count == 0) return;
    for (int64_t c = 0; c < geometry_.channels; ++c) {
      const double inverse = lines.inverse[c];
      lines.offset[c] = static_cast<T>(sums[c] / count);
      lines.factor[c] = static_cast<T>(inverse * inverse * products[c] / count);
    }
  }

  NormGeometry geometry_;
  std::unique_ptr<NormLoops<T>> loops_;
  double epsilon_;
  bool global_;
  NormMask mask_ = NormMask::kNone;
  int x_;
  int y_ = -1;
  int scale_;
  int bias_;
  int mean_;
  int variance_;
  int y_gradient_;
  int x_gradient_;
  int scale_gradient_;
  int bias_gradient_;
  int z_gradient_ = -1;
  int masked_ = -1;
  int scratch_ = -1;
  int sums_ = -1;
  int lines_ = -1;
};

// Recomputes Y of batch_norm or batch_norm_act. It must round as BatchNormKernel does: it reads the
// statistics that Y was computed from and runs the same pass with the same coefficients.
template <typename T>
class BatchNormReplayKernel final : public Kernel {
 public:
  BatchNormReplayKernel(PrepareContext& context, MakeNormLoops<T> make_loops)
      : geometry_(ParseNormGeometry(context)),
        loops_(make_loops(geometry_)),
        unchanged_(!UsesGlobalStatistics(context) && geometry_.count() <= 1),
        rectifies_(context.Attr<std::string>("act_type") == "relu"),
        x_(context.InputIndex("X")),
        z_(context.InputIndex("Z")),
        scale_(context.InputIndex("Scale")),
        bias_(context.InputIndex("Bias")),
        saved_mean_(context.InputIndex("SavedMean")),
        saved_variance_(context.InputIndex("SavedVariance")),
        y_(context.OutputIndex("Y")),
        lines_(context.RequestWorkspace(3 * geometry_.padded_channels() *
                                        static_cast<int64_t>(sizeof(T)))) {}

  void Run(const KernelContext& run) override {
    auto* means = static_cast<T*>(run.workspace(lines_));
    T* slopes = means + geometry_.padded_channels();
    T* shifts = slopes + geometry_.padded_channels();
    std::fill_n(means, 3 * geometry_.padded_channels(), T{0});
    if (unchanged_) {
      std::fill_n(slopes, geometry_.channels, T{1});
    } else {
      std::copy_n(InputData<T>(run, saved_mean_), geometry_.channels, means);
      std::copy_n(InputData<T>(run, saved_variance_), geometry_.channels, slopes);
      ScaleAndShift(geometry_.channels, InputData<T>(run, scale_), InputData<T>(run, bias_), slopes,
                    shifts);
    }
    loops_->Normalize(InputData<T>(run, x_), InputData<T>(run, z_), {means, slopes, shifts},
                      rectifies_, OutputData<T>(run, y_));
  }

 private:
  NormGeometry geometry_;
  std::unique_ptr<NormLoops<T>> loops_;
  bool unchanged_;
  bool rectifies_;
  int x_;
  int z_;
  int scale_;
  int bias_;
  int saved_mean_;
  int saved_variance_;
  int y_;
  int lines_;
};

}  // namespace

void AddBatchNormKernels(OpRegistry& registry, std::string_view type) {
  AddNormKernels<BatchNormKernel>(registry, type);
  AddNormKernels<BatchNormGradKernel>(registry, StrCat(type, "_grad"));
}

void AddBatchNormReplayKernels(OpRegistry& registry, std::string_view type) {
  AddNormKernels<BatchNormReplayKernel>(registry, type);
}

}  // namespace skiff
