// batch_norm_act: batch_norm, an addition and relu in one op.
//
//   Y = max(0, Scale · (X - mean) / sqrt(variance + epsilon) + Bias + Z)
//
// Everything else is as in batch_norm, and the results are the same bit for bit. The pass
// fuse_batch_norm_act creates it. Fluid has no counterpart (its fused_batch_norm_act and
// fused_bn_add_activation are for cuDNN, with channels last).
//
// Gradient, with G = Y@GRAD where Y > 0, else 0: Z@GRAD = G, the others are those of batch_norm
// with G in place of Y@GRAD. If nothing was added, the gradient op computes the sign of Y again
// from X, so that Y need not be kept; the kernel of the same name rounds as it did in the forward
// pass. Otherwise it reads Y.

#include "framework/base/error.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/nn/normalization/batch_norm_definition.h"
#include "operators/nn/normalization/batch_norm_kernels.h"
#include "operators/nn/normalization/norm_arguments.h"

namespace skiff {
namespace {

std::vector<Op> GradOps(const GradContext& context) {
  const std::vector<StaticText> saved = {
      "X",         "Scale",         "Bias",         "MeanOut", "VarianceOut",
      "SavedMean", "SavedVariance", "ReserveSpace", "Y@GRAD"};
  std::vector<StaticText> with_output = saved;
  with_output.push_back("Y");
  const std::vector<StaticText> gradients = {"X@GRAD", "Z@GRAD", "Scale@GRAD", "Bias@GRAD"};
  const bool adds = !context.Input("Z").empty();
  return BatchNormGradOps(context,
                          GradOp("batch_norm_act_grad", adds ? with_output : saved, gradients));
}

OpDef FusedDef() {
  OpDef def = BatchNormDefinition();
  def.type = "batch_norm_act";
  def.doc =
      "Y = max(0, Scale * (X - mean) / sqrt(variance + epsilon) + Bias + Z): batch_norm, an "
      "addition and relu in one.";
  def.inputs.insert(def.inputs.begin() + 1,
                    {.name = "Z", .doc = "The addend, like X; 0 if absent.", .dispensable = true});
  def.attrs.push_back(ReluTypeAttr());
  def.infer = [infer = def.infer](OpContext& context) {
    infer(context);
    const TensorMeta& x = context.Input("X");
    if (context.HasInput("Z")) CheckInputLike(context, "Z", x.shape, x.dtype);
  };
  def.grad = GradOps;
  def.in_place.emplace_back("Z", "Y");
  def.layout_slots = {"X", "Z", "Y"};
  return def;
}

OpDef FusedGradDef() {
  OpDef def = BatchNormGradDefinition();
  def.type = "batch_norm_act_grad";
  def.doc =
      "The gradient of batch_norm_act. Z@GRAD = G, which is Y@GRAD where Y > 0, else 0; the "
      "others are those of batch_norm_grad for G. Without Y, which only "
      "an op with Z needs, its sign is computed from X.";
  for (SlotDef& slot : def.inputs) {
    // Unlike batch_norm_grad, this op needs the data of Bias where it computes the sign of Y again.
    if (slot.name == "Bias") slot.shape_only = false;
  }
  def.inputs.push_back({.name = "Y", .doc = "Needed where Z was added.", .dispensable = true});
  def.outputs.push_back({.name = "Z@GRAD", .doc = "Like X.", .dispensable = true});
  def.attrs.push_back(ReluTypeAttr());
  def.infer = [infer = def.infer](OpContext& context) {
    infer(context);
    const TensorMeta& x = context.Input("X");
    if (context.HasInput("Y")) CheckInputLike(context, "Y", x.shape, x.dtype);
    // Z@GRAD says that Z was added, and the sign of a sum with Z can't be computed from X alone.
    SKIFF_ENFORCE(context.HasInput("Y") || !context.HasOutput("Z@GRAD"), kInvalidArgument,
                  context.op().type, ": Z@GRAD needs the input Y");
    context.SetOutputLike("Z@GRAD", "X");
  };
  def.no_gradient_reason = "second derivatives of batch normalization are not provided";
  def.in_place.emplace_back("Y@GRAD", "Z@GRAD");
  def.layout_slots = {"X", "Y", "Y@GRAD", "X@GRAD", "Z@GRAD"};
  return def;
}

}  // namespace

void RegisterBatchNormAct(OpRegistry& registry) {
  registry.Add(FusedDef());
  registry.Add(FusedGradDef());
  AddBatchNormKernels(registry, "batch_norm_act");
}

}  // namespace skiff
