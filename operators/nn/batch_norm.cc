// batch_norm: each channel with mean 0 and variance 1 over batch and pixels, scaled and shifted.
//
//   Y = Scale · (X - mean) / sqrt(variance + epsilon) + Bias
//
// Training: mean and (biased) variance are the batch's, and the running ones move:
// MeanOut = momentum · Mean + (1 - momentum) · mean, likewise VarianceOut. With use_global_stats,
// or is_test without trainable_statistics, they are Mean and Variance, which stay. SavedMean and
// SavedVariance hold the mean and 1 / sqrt(variance + epsilon) that Y was made with. A batch of one
// value a channel passes unchanged when training (Fluid's rule: there is no variance).
//
// Gradient, with h = 1 / sqrt(variance + epsilon), z = (X - mean) · h and m values a channel:
//   Bias@GRAD = sum Y@GRAD,  Scale@GRAD = sum Y@GRAD · z
//   X@GRAD = Scale · h · (Y@GRAD - Bias@GRAD / m - z · Scale@GRAD / m), without the two last terms
//   when mean and variance did not depend on X.
//
// Source: Ioffe & Szegedy 2015; Fluid's batch_norm (PaddlePaddle 2.6).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/nn/batch_norm_shared.h"

namespace skiff {
namespace {

std::vector<AttrDef> BatchNormAttrs() {
  const auto flag = [](std::string name, std::string doc) {
    return AttrDef{.name = std::move(name),
                   .type = AttrType::kBool,
                   .default_value = false,
                   .doc = std::move(doc)};
  };
  return {
      flag("is_test", "Evaluation: Mean and Variance are used and stay."),
      {.name = "momentum",
       .type = AttrType::kFloat,
       .default_value = 0.9f,
       .doc = "How much of the running statistics a step keeps; MomentumTensor goes before it."},
      {.name = "epsilon",
       .type = AttrType::kFloat,
       .default_value = 1e-5f,
       .doc = "Added to the variance.",
       .check =
           [](const Attribute& value) {
             const float* epsilon = std::get_if<float>(&value);
             SKIFF_ENFORCE(epsilon != nullptr && *epsilon >= 0, kInvalidArgument,
                           "epsilon: expected a value of at least 0");
           }},
      ChannelOrderAttr("data_layout"),
      flag("use_global_stats", "Mean and Variance are used, in training too."),
      flag("trainable_statistics", "The batch's statistics are used even under is_test."),
  };
}

bool UsesGlobalStatistics(const OpContext& context) {
  return context.Attr<bool>("use_global_stats") ||
         (context.Attr<bool>("is_test") && !context.Attr<bool>("trainable_statistics"));
}

// Checks that the slots, where present, hold one value a channel, of X's dtype.
void CheckByChannel(const OpContext& context, int64_t channels,
                    std::initializer_list<const char*> slots) {
  for (const char* slot : slots) {
    if (context.HasInput(slot)) CheckInputLike(context, slot, {channels}, context.Input("X").dtype);
  }
}

// As Fluid's rule, which passes the running statistics a second time where they were used.
std::vector<Op> BatchNormGradOps(const GradContext& context) {
  static const auto& rule =
      *new GradRule(GradOp("batch_norm_grad",
                           {"X", "Scale", "Bias", "MeanOut", "VarianceOut", "SavedMean",
                            "SavedVariance", "ReserveSpace", "Y@GRAD"},
                           {"X@GRAD", "Scale@GRAD", "Bias@GRAD"}));
  std::vector<Op> ops = rule(context);
  const Op& forward = context.forward();
  if (forward.Attr<bool>("is_test", false) || forward.Attr<bool>("use_global_stats", false)) {
    ops[0].SetInput("Mean", context.Output("MeanOut"));
    ops[0].SetInput("Variance", context.Output("VarianceOut"));
  }
  return ops;
}

OpDef BatchNormDef() {
  OpDef def;
  def.type = "batch_norm";
  def.doc =
      "Y = Scale * (X - mean) / sqrt(variance + epsilon) + Bias, with mean and variance of each "
      "channel over the batch, or Mean and Variance (is_test, use_global_stats).";
  def.inputs = {
      {.name = "X", .doc = "[N, C, ...] or [N, ..., C] (data_layout), rank 2 to 5."},
      {.name = "Scale", .doc = "[C]; 1 if absent.", .dispensable = true},
      {.name = "Bias", .doc = "[C]; 0 if absent.", .dispensable = true},
      {.name = "Mean", .doc = "[C], the running mean."},
      {.name = "Variance", .doc = "[C], the running variance."},
      {.name = "MomentumTensor", .doc = "One value, instead of momentum.", .dispensable = true}};
  def.outputs = {
      {.name = "Y", .doc = "Like X."},
      {.name = "MeanOut", .doc = "[C], the new running mean; usually the variable of Mean."},
      {.name = "VarianceOut", .doc = "[C], the new running variance."},
      {.name = "SavedMean",
       .doc = "[C], the mean that Y was made with.",
       .dispensable = true,
       .intermediate = true},
      {.name = "SavedVariance",
       .doc = "[C], 1 / sqrt(variance + epsilon) that Y was made with.",
       .dispensable = true,
       .intermediate = true},
      {.name = "ReserveSpace", .doc = "Empty.", .dispensable = true, .intermediate = true}};
  def.attrs = BatchNormAttrs();
  def.infer = [](OpContext& context) {
    const NormGeometry geometry = ParseNormGeometry(context);
    CheckByChannel(context, geometry.channels, {"Scale", "Bias", "Mean", "Variance"});
    CheckOneElement(context, "MomentumTensor");
    const DType dtype = context.Input("X").dtype;
    if (context.HasInput("MomentumTensor")) {
      CheckInputLike(context, "MomentumTensor", context.Input("MomentumTensor").shape, dtype);
    }
    context.SetOutputLike("Y", "X");
    for (const char* slot : {"MeanOut", "VarianceOut", "SavedMean", "SavedVariance"})
      context.SetOutput(slot, {geometry.channels}, dtype);
    context.SetOutput("ReserveSpace", {0}, dtype);
  };
  def.grad = BatchNormGradOps;
  def.in_place = {{"X", "Y"}, {"Mean", "MeanOut"}, {"Variance", "VarianceOut"}};
  def.layout_rule = LayoutRule::kChannelBlocked;
  def.layout_slots = {"X", "Y"};
  return def;
}

OpDef BatchNormGradDef() {
  OpDef def;
  def.type = "batch_norm_grad";
  def.doc =
      "Bias@GRAD = sum Y@GRAD; Scale@GRAD = sum Y@GRAD * z with z = (X - mean) / sqrt(variance + "
      "epsilon); X@GRAD = Scale / sqrt(variance + epsilon) * (Y@GRAD - Bias@GRAD / m - z * "
      "Scale@GRAD / m) over the m values of a channel, without the last two terms for global "
      "statistics.";
  def.inputs = {
      {.name = "X", .doc = "Of batch_norm."},
      {.name = "Scale", .doc = "Of batch_norm.", .dispensable = true},
      {.name = "Bias", .doc = "Of batch_norm.", .dispensable = true, .shape_only = true},
      {.name = "Mean", .doc = "MeanOut again; unused.", .dispensable = true, .shape_only = true},
      {.name = "Variance",
       .doc = "VarianceOut again; unused.",
       .dispensable = true,
       .shape_only = true},
      {.name = "MeanOut", .doc = "Read with global statistics.", .dispensable = true},
      {.name = "VarianceOut", .doc = "Read with global statistics.", .dispensable = true},
      {.name = "SavedMean", .doc = "Read with the batch's statistics.", .dispensable = true},
      {.name = "SavedVariance", .doc = "Read with the batch's statistics.", .dispensable = true},
      {.name = "ReserveSpace", .doc = "Unused.", .dispensable = true, .shape_only = true},
      {.name = "Y@GRAD", .doc = "The gradient of Y."}};
  def.outputs = {{.name = "X@GRAD", .doc = "Like X.", .dispensable = true},
                 {.name = "Scale@GRAD", .doc = "[C].", .dispensable = true},
                 {.name = "Bias@GRAD", .doc = "[C].", .dispensable = true}};
  def.attrs = BatchNormAttrs();
  def.infer = [](OpContext& context) {
    const NormGeometry geometry = ParseNormGeometry(context);
    CheckByChannel(context, geometry.channels,
                   {"Scale", "Bias", "Mean", "Variance", "MeanOut", "VarianceOut", "SavedMean",
                    "SavedVariance"});
    const TensorMeta& x = context.Input("X");
    CheckInputLike(context, "Y@GRAD", x.shape, x.dtype);
    context.SetOutputLike("X@GRAD", "X");
    for (const char* slot : {"Scale@GRAD", "Bias@GRAD"})
      context.SetOutput(slot, {geometry.channels}, x.dtype);
  };
  def.no_gradient_reason = "second derivatives of batch normalization are not provided";
  def.in_place = {{"Y@GRAD", "X@GRAD"}};
  def.layout_rule = LayoutRule::kChannelBlocked;
  def.layout_slots = {"X", "Y@GRAD", "X@GRAD"};
  return def;
}

template <typename T>
using MakeLoops = std::unique_ptr<NormLoops<T>> (*)(const NormGeometry&);

template <typename T>
const T* InputData(const KernelContext& run, int index) {
  return index < 0 ? nullptr : run.input(index).data<T>();
}

template <typename T>
T* OutputData(const KernelContext& run, int index) {
  return index < 0 ? nullptr : run.output(index).data<T>();
}

// Copies unless both are the same storage.
template <typename T>
void CopyByChannel(const T* from, int64_t channels, T* to) {
  if (from != to) std::copy_n(from, channels, to);
}

template <typename T>
class BatchNormKernel final : public Kernel {
 public:
  BatchNormKernel(PrepareContext& context, MakeLoops<T> make_loops)
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
    SKIFF_ENFORCE(y_ >= 0, kInvalidArgument, "batch_norm: output \"Y\" is missing");
    const int64_t channels = geometry_.padded_channels();
    scratch_ = context.RequestWorkspace(loops_->scratch_bytes());
    moments_ = context.RequestWorkspace(2 * channels * static_cast<int64_t>(sizeof(double)));
    lines_ = context.RequestWorkspace(3 * channels * static_cast<int64_t>(sizeof(T)));
  }

  void Run(const KernelContext& run) override {
    if (!global_ && geometry_.count() <= 1) {
      PassUnchanged(run);
      return;
    }
    auto* mean = static_cast<double*>(run.workspace(moments_));
    double* squares = mean + geometry_.padded_channels();
    const T* x = run.input(x_).template data<T>();
    if (!global_) loops_->Moments(x, run.workspace(scratch_), mean, squares);
    auto* means = static_cast<T*>(run.workspace(lines_));
    T* slopes = means + geometry_.padded_channels();
    T* shifts = slopes + geometry_.padded_channels();
    std::fill_n(means, 3 * geometry_.padded_channels(), T{0});
    if (global_) {
      TakeGlobalStatistics(run, means, slopes);
    } else {
      TakeBatchStatistics(run, mean, squares, means, slopes);
    }
    SaveStatistics(run, means, slopes);
    const T* scale = InputData<T>(run, scale_);
    const T* bias = InputData<T>(run, bias_);
    for (int64_t c = 0; c < geometry_.channels; ++c) {
      if (scale != nullptr) slopes[c] *= scale[c];
      if (bias != nullptr) shifts[c] = bias[c];
    }
    loops_->Normalize(x, means, slopes, shifts, run.output(y_).template data<T>());
  }

 private:
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

  void PassUnchanged(const KernelContext& run) const {
    const Tensor& x = run.input(x_);
    Tensor& y = run.output(y_);
    if (x.raw_data() != y.raw_data() && geometry_.count() > 0)
      std::memcpy(y.raw_data(), x.raw_data(), static_cast<size_t>(x.byte_count()));
    KeepRunningStatistics(run);
    for (const int saved : {saved_mean_, saved_variance_}) {
      if (saved >= 0) std::fill_n(OutputData<T>(run, saved), geometry_.channels, T{0});
    }
  }

  NormGeometry geometry_;
  std::unique_ptr<NormLoops<T>> loops_;
  double epsilon_;
  double momentum_;
  bool global_;
  int x_;
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
  BatchNormGradKernel(PrepareContext& context, MakeLoops<T> make_loops)
      : geometry_(ParseNormGeometry(context)),
        loops_(make_loops(geometry_)),
        epsilon_(context.Attr<float>("epsilon")),
        global_(UsesGlobalStatistics(context)),
        x_(context.InputIndex("X")),
        scale_(context.InputIndex("Scale")),
        mean_(context.InputIndex(global_ ? "MeanOut" : "SavedMean")),
        variance_(context.InputIndex(global_ ? "VarianceOut" : "SavedVariance")),
        y_gradient_(context.InputIndex("Y@GRAD")),
        x_gradient_(context.OutputIndex("X@GRAD")),
        scale_gradient_(context.OutputIndex("Scale@GRAD")),
        bias_gradient_(context.OutputIndex("Bias@GRAD")) {
    SKIFF_ENFORCE(mean_ >= 0 && variance_ >= 0, kInvalidArgument, context.op().type, ": inputs ",
                  global_ ? "MeanOut and VarianceOut" : "SavedMean and SavedVariance",
                  " are missing");
    const int64_t channels = geometry_.padded_channels();
    scratch_ = context.RequestWorkspace(loops_->scratch_bytes());
    sums_ = context.RequestWorkspace(2 * channels * static_cast<int64_t>(sizeof(double)));
    lines_ = context.RequestWorkspace(5 * channels * static_cast<int64_t>(sizeof(T)));
  }

  void Run(const KernelContext& run) override {
    const int64_t channels = geometry_.padded_channels();
    auto* sums = static_cast<double*>(run.workspace(sums_));
    double* products = sums + channels;
    std::fill_n(sums, 2 * channels, 0.0);
    const bool unchanged = !global_ && geometry_.count() <= 1;
    auto* lines = static_cast<T*>(run.workspace(lines_));
    std::fill_n(lines, 5 * channels, T{0});
    const Lines by_channel{lines, lines + channels, lines + 2 * channels, lines + 3 * channels,
                           lines + 4 * channels};
    const T* x = run.input(x_).template data<T>();
    const T* dy = run.input(y_gradient_).template data<T>();
    if (!unchanged) {
      TakeStatistics(run, by_channel);
      if (geometry_.count() > 0) {
        loops_->GradientSums(x, dy, by_channel.mean, run.workspace(scratch_), sums, products);
      }
    }
    WriteParameterGradients(run, by_channel, sums, products);
    if (x_gradient_ < 0) return;
    if (unchanged) {
      PassUnchanged(run);
      return;
    }
    PrepareSlopes(run, sums, products, by_channel);
    loops_->Gradient(x, dy, by_channel.mean, by_channel.slope, by_channel.offset, by_channel.factor,
                     run.output(x_gradient_).template data<T>());
  }

 private:
  // Arrays by channel.
  struct Lines {
    T* mean;
    T* inverse;  // 1 / sqrt(variance + epsilon)
    T* slope;
    T* offset;
    T* factor;
  };

  void TakeStatistics(const KernelContext& run, const Lines& lines) const {
    const T* mean = InputData<T>(run, mean_);
    const T* variance = InputData<T>(run, variance_);
    for (int64_t c = 0; c < geometry_.channels; ++c) {
      lines.mean[c] = mean[c];
      lines.inverse[c] =
          global_ ? static_cast<T>(1.0 / std::sqrt(static_cast<double>(variance[c]) + epsilon_))
                  : variance[c];
    }
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

  void PrepareSlopes(const KernelContext& run, const double* sums, const double* products,
                     const Lines& lines) const {
    const T* scale = InputData<T>(run, scale_);
    const auto count = static_cast<double>(geometry_.count());
    for (int64_t c = 0; c < geometry_.channels; ++c) {
      const double inverse = lines.inverse[c];
      lines.slope[c] = static_cast<T>((scale == nullptr ? 1.0 : scale[c]) * inverse);
      if (global_ || count == 0) continue;
      lines.offset[c] = static_cast<T>(sums[c] / count);
      lines.factor[c] = static_cast<T>(inverse * inverse * products[c] / count);
    }
  }

  void PassUnchanged(const KernelContext& run) const {
    const Tensor& dy = run.input(y_gradient_);
    Tensor& dx = run.output(x_gradient_);
    if (dy.raw_data() != dx.raw_data() && geometry_.count() > 0)
      std::memcpy(dx.raw_data(), dy.raw_data(), static_cast<size_t>(dy.byte_count()));
  }

  NormGeometry geometry_;
  std::unique_ptr<NormLoops<T>> loops_;
  double epsilon_;
  bool global_;
  int x_;
  int scale_;
  int mean_;
  int variance_;
  int y_gradient_;
  int x_gradient_;
  int scale_gradient_;
  int bias_gradient_;
  int scratch_ = -1;
  int sums_ = -1;
  int lines_ = -1;
};

// Images of one layout: blocked, plain with long enough rows of pixels, or rows of channels.
bool VectorAccepts(const OpContext& context) {
  const NormGeometry geometry = ParseNormGeometry(context);
  const Layout layout = context.Input("X").layout;
  if (geometry.count() == 0 || geometry.channels == 0) return false;
  const bool first = geometry.order == ChannelOrder::kFirst;
  const bool fits = layout.is_plain() ? geometry.is_rows() || (first && geometry.pixels >= 16)
                                      : first && (geometry.block == 8 || geometry.block == 16);
  if (!fits) return false;
  const std::vector<std::string>& images = context.def().layout_slots;
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

std::unique_ptr<NormLoops<float>> MakeFloatLoops(const NormGeometry& geometry) {
  return geometry.is_rows() ? MakeColumnNormLoops(geometry) : MakeVectorNormLoops(geometry);
}

}  // namespace

void RegisterBatchNorm(OpRegistry& registry) {
  registry.Add(BatchNormDef());
  registry.Add(BatchNormGradDef());
  registry.AddCpuKernels<float, double>(
      "batch_norm", []<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<BatchNormKernel<T>>(context, MakePlainNormLoops<T>);
      });
  registry.AddCpuKernels<float, double>(
      "batch_norm_grad", []<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<BatchNormGradKernel<T>>(context, MakePlainNormLoops<T>);
      });
  registry.AddKernel("batch_norm",
                     {.name = "vector",
                      .dtype = DType::kFloat32,
                      .prepare = [](PrepareContext& context) -> std::unique_ptr<Kernel> {
                        return std::make_unique<BatchNormKernel<float>>(context, MakeFloatLoops);
                      },
                      .accepts = VectorAccepts,
                      .priority = 10});
  registry.AddKernel("batch_norm_grad",
                     {.name = "vector",
                      .dtype = DType::kFloat32,
                      .prepare = [](PrepareContext& context) -> std::unique_ptr<Kernel> {
                        return std::make_unique<BatchNormGradKernel<float>>(context,
                                                                            MakeFloatLoops);
                      },
                      .accepts = VectorAccepts,
                      .priority = 10});
}

}  // namespace skiff
