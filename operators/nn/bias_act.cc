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
#include "operators/nn/normalization/batch_norm_passes.h"
#include "operators/nn/normalization/norm_arguments.h"

namespace skiff {
namespace {

// Returns a kernel that runs the loops of batch normalization with mean 0 and slope 1. The arrays
// by channel live in the workspace, whose contents are undefined at the start of a step, so each
// run fills them.
template <typename T>
std::unique_ptr<Kernel> PrepareBiasAct(PrepareContext& context, MakeNormLoops<T> make_loops) {
  using Wide = WideType<T>;
  const NormGeometry geometry = ParseNormGeometry(context);
  std::unique_ptr<NormLoops<T>> loops = make_loops(geometry);
  const In<T> x(context, "X");
  const In<T> bias(context, "Bias");
  const Out<T> out(context, "Out");
  const int lines =
      context.RequestWorkspace(ByteCount(3 * geometry.padded_channels(), kDTypeOf<Wide>));
  return MakeRowsKernel([=, loops = std::move(loops)](const KernelContext& run) {
    loops->SetBatch(x.shape(run)[0]);
    const int64_t channels = geometry.padded_channels();
    auto* means = static_cast<Wide*>(run.workspace(lines));
    Wide* slopes = means + channels;
    Wide* shifts = slopes + channels;
    std::fill_n(means, channels, Wide{0});
    std::fill_n(slopes, channels, Wide{1});
    std::transform(bias(run), bias(run) + geometry.channels, shifts,
                   [](T shift) { return static_cast<Wide>(shift); });
    // Channels that pad the last block must come out as 0.
    std::fill(shifts + geometry.channels, shifts + channels, Wide{0});
    loops->Normalize(x(run), nullptr, {means, slopes, shifts}, /*rectify=*/true, out(run));
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareBiasActGrad(PrepareContext& context, MakeNormLoops<T> make_loops) {
  using Wide = WideType<T>;
  const NormGeometry prepared = ParseNormGeometry(context, "Out");
  std::unique_ptr<NormLoops<T>> loops = make_loops(prepared);
  const In<T> out(context, "Out");
  const In<T> out_gradient(context, "Out@GRAD");
  const Out<T> x_gradient(context, "X@GRAD");
  const Out<T> bias_gradient(context, "Bias@GRAD");
  const int scratch = context.RequestWorkspace(loops->scratch_bytes());
  const int sums_memory =
      context.RequestWorkspace(ByteCount(2 * prepared.padded_channels(), DType::kFloat64));
  const int means_memory =
      context.RequestWorkspace(ByteCount(prepared.padded_channels(), kDTypeOf<Wide>));
  const TensorMeta& meta = context.Input("Out");
  // The loops always write the masked gradient. If the op lacks X@GRAD, the gradient goes to a
  // workspace.
  const int unwanted = x_gradient.is_there()
                           ? -1
                           : context.RequestWorkspace(
                                 ByteCount(StorageElements(meta.shape, meta.layout), kDTypeOf<T>));
  return MakeRowsKernel([=, loops = std::move(loops)](const KernelContext& run) {
    NormGeometry geometry = prepared;
    geometry.batch = out.shape(run)[0];
    loops->SetBatch(geometry.batch);
    const int64_t channels = geometry.padded_channels();
    auto* sums = static_cast<double*>(run.workspace(sums_memory));
    std::fill_n(sums, 2 * channels, 0.0);
    auto* means = static_cast<Wide*>(run.workspace(means_memory));
    std::fill_n(means, channels, Wide{0});
    T* dx = unwanted < 0 ? x_gradient(run) : static_cast<T*>(run.workspace(unwanted));
    if (geometry.count() > 0) {
      // Only the sums of g are needed. The loops also compute the sums of products with x; passing
      // Out as x costs no memory traffic, since the mask reads Out anyway.
      loops->GradientSums(out(run), {out_gradient(run), NormMask::kOutput, out(run)},
                          {.mean = means}, run.workspace(scratch), sums, sums + channels, dx);
    }
    if (!bias_gradient.is_there()) return;
    std::transform(sums, sums + geometry.channels, bias_gradient(run),
                   [](double sum) { return static_cast<T>(static_cast<Wide>(sum)); });
  });
}

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
  def.precision = Precision::kFollow;
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
  AddNormKernels(registry, "bias_act", [](PrepareContext& context, auto make_loops) {
    return PrepareBiasAct(context, make_loops);
  });
  AddNormKernels(registry, "bias_act_grad", [](PrepareContext& context, auto make_loops) {
    return PrepareBiasActGrad(context, make_loops);
  });
}

}  // namespace skiff
