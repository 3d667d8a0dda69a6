// bias_act: a bias per channel and relu in one op.
//
//   Out = max(0, X + Bias[c]),   NaN stays NaN
//
// The forward op gives the same bits as elementwise_add and relu. The pass fuse_bias_act creates
// it. Fluid has no counterpart (its fused_elemwise_activation keeps the sum).
//
// The kernels are those of batch normalization with mean 0 and slope 1, for every layout that batch
// normalization supports: (x - 0) · 1 + bias is x + bias exactly, with or without a fused
// multiply-add.
//
// Gradient: X@GRAD = Out@GRAD where Out > 0, else 0; Bias@GRAD = its sum per channel. The
// sign of Out decides, so X need not be kept and Out may overwrite it.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/nn/kernels/batch_norm_passes.h"
#include "operators/nn/kernels/norm_arguments.h"

namespace skiff {
namespace {

// Runs the loops of batch normalization with mean 0 and slope 1. The arrays by channel live in the
// workspace, whose contents are undefined at the start of a step, so each run fills them.
template <typename T>
class BiasActKernel final : public Kernel {
 public:
  BiasActKernel(PrepareContext& context, MakeNormLoops<T> make_loops)
      : geometry_(ParseNormGeometry(context)),
        loops_(make_loops(geometry_)),
        x_(context.InputIndex("X")),
        bias_(context.InputIndex("Bias")),
        out_(context.OutputIndex("Out")),
        lines_(context.RequestWorkspace(ByteCount(3 * geometry_.padded_channels(), kDTypeOf<T>))) {}

  bool TakesFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    loops_->SetBatch(run.input(x_).shape()[0]);
    const int64_t channels = geometry_.padded_channels();
    auto* means = static_cast<T*>(run.workspace(lines_));
    T* slopes = means + channels;
    T* shifts = slopes + channels;
    std::fill_n(means, channels, T{0});
    std::fill_n(slopes, channels, T{1});
    std::copy_n(run.input(bias_).template data<T>(), geometry_.channels, shifts);
    // Channels that pad the last block must come out as 0.
    std::fill(shifts + geometry_.channels, shifts + channels, T{0});
    loops_->Normalize(run.input(x_).template data<T>(), nullptr, {means, slopes, shifts},
                      /*rectify=*/true, run.output(out_).template data<T>());
  }

 private:
  NormGeometry geometry_;
  std::unique_ptr<NormLoops<T>> loops_;
  int x_;
  int bias_;
  int out_;
  int lines_;
};

template <typename T>
class BiasActGradKernel final : public Kernel {
 public:
  BiasActGradKernel(PrepareContext& context, MakeNormLoops<T> make_loops)
      : geometry_(ParseNormGeometry(context, "Out")),
        loops_(make_loops(geometry_)),
        out_(context.InputIndex("Out")),
        out_gradient_(context.InputIndex("Out@GRAD")),
        x_gradient_(context.OutputIndex("X@GRAD")),
        bias_gradient_(context.OutputIndex("Bias@GRAD")),
        scratch_(context.RequestWorkspace(loops_->scratch_bytes())),
        sums_(
            context.RequestWorkspace(ByteCount(2 * geometry_.padded_channels(), DType::kFloat64))),
        means_(context.RequestWorkspace(ByteCount(geometry_.padded_channels(), kDTypeOf<T>))) {
    const TensorMeta& out = context.Input("Out");
    // The loops always write the masked gradient. If X@GRAD is absent, it goes to a workspace.
    if (x_gradient_ < 0) {
      unwanted_ =
          context.RequestWorkspace(ByteCount(StorageElements(out.shape, out.layout), kDTypeOf<T>));
    }
  }

  bool TakesFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    geometry_.batch = run.input(out_).shape()[0];
    loops_->SetBatch(geometry_.batch);
    const int64_t channels = geometry_.padded_channels();
    auto* sums = static_cast<double*>(run.workspace(sums_));
    std::fill_n(sums, 2 * channels, 0.0);
    auto* means = static_cast<T*>(run.workspace(means_));
    std::fill_n(means, channels, T{0});
    const T* out = run.input(out_).template data<T>();
    T* x_gradient = unwanted_ < 0 ? run.output(x_gradient_).template data<T>()
                                  : static_cast<T*>(run.workspace(unwanted_));
    if (geometry_.count() > 0) {
      // Only the sums of g are needed. The loops also compute the sums of products with x; passing
      // Out as x costs no memory traffic, since the mask reads Out anyway.
      loops_->GradientSums(
          out, {run.input(out_gradient_).template data<T>(), NormMask::kOutput, out},
          {.mean = means}, run.workspace(scratch_), sums, sums + channels, x_gradient);
    }
    if (bias_gradient_ < 0) return;
    T* bias_gradient = run.output(bias_gradient_).template data<T>();
    std::transform(sums, sums + geometry_.channels, bias_gradient,
                   [](double sum) { return static_cast<T>(sum); });
  }

 private:
  NormGeometry geometry_;
  std::unique_ptr<NormLoops<T>> loops_;
  int out_;
  int out_gradient_;
  int x_gradient_;
  int bias_gradient_;
  int scratch_;
  int sums_;
  int means_;
  int unwanted_ = -1;  // X@GRAD if it is absent
};

std::vector<AttrDef> Attributes() { return {ChannelOrderAttr("data_layout"), ReluTypeAttr()}; }

OpDef BiasActDef() {
  OpDef def;
  def.type = "bias_act";
  def.doc = "Out = max(0, X + Bias): a bias per channel and relu in one.";
  def.inputs = {{.name = "X", .doc = "[N, C, ...] or [N, ..., C] (data_layout), rank 2 to 5."},
                {.name = "Bias", .doc = "[C]."}};
  def.outputs = {{.name = "Out", .doc = "Like X."}};
  def.attrs = Attributes();
  def.infer = [](OpContext& context) {
    CheckVectors(context, {"Bias"}, ParseNormGeometry(context).channels, "channel");
    context.SetOutputLike("Out", "X");
  };
  def.in_place = {{"X", "Out"}};
  def.layout_rule = LayoutRule::kChannelBlocked;
  def.layout_slots = {"X", "Out"};
  return def;
}

OpDef BiasActGradDef(OpDef* forward) {
  OpDef def = GradientOf(forward, {"Out", ForShape("Bias"), "Out@GRAD"}, {"X@GRAD", "Bias@GRAD"});
  def.doc =
      "X@GRAD = Out@GRAD where Out > 0, else 0; Bias@GRAD = the sum of X@GRAD over all but the "
      "channels.";
  def.infer = [](OpContext& context) {
    const NormGeometry geometry = ParseNormGeometry(context, "Out");
    CheckVectors(context, {"Bias"}, geometry.channels, "channel");
    const TensorMeta& out = context.Input("Out");
    CheckInputLike(context, "Out@GRAD", out.shape, out.dtype);
    context.SetOutputLike("X@GRAD", "Out");
    context.SetOutputLike("Bias@GRAD", "Bias");
  };
  def.in_place = {{"Out@GRAD", "X@GRAD"}};
  def.layout_rule = LayoutRule::kChannelBlocked;
  def.layout_slots = {"Out", "Out@GRAD", "X@GRAD"};
  return def;
}

}  // namespace

void RegisterBiasAct(OpRegistry& registry) {
  OpDef def = BiasActDef();
  registry.Add(BiasActGradDef(&def));
  registry.Add(std::move(def));
  AddNormKernels<BiasActKernel>(registry, "bias_act");
  AddNormKernels<BiasActGradKernel>(registry, "bias_act_grad");
}

}  // namespace skiff
