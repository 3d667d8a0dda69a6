// batch_norm_replay: recomputes the output of batch_norm or batch_norm_act, bit for bit.
//
//   Y = act(Scale · (X - SavedMean) · SavedVariance + Bias + Z)
//
// with X and Z of the forward op and what it saved (SavedVariance is 1 / sqrt(variance + epsilon)).
// The passes replay_activation and recompute create it, so that Y need not be kept from the forward
// to the backward pass. X is kept anyway, and the statistics aren't computed again, so a replay is
// one pass over the data.
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/nn/normalization/batch_norm_definition.h"
#include "operators/nn/normalization/batch_norm_kernels.h"
#include "operators/nn/normalization/batch_norm_passes.h"
#include "operators/nn/normalization/norm_arguments.h"

namespace skiff {
namespace {

OpDef ReplayDef() {
  OpDef def;
  def.type = "batch_norm_replay";
  def.doc =
      "Y = act(Scale * (X - SavedMean) * SavedVariance + Bias + Z): Y of batch_norm or "
      "batch_norm_act again, from its inputs and what it saved. A batch with one value per "
      "channel isn't normalized, as there.";
  def.inputs = {
      {.name = "X", .doc = "Of the forward op."},
      {.name = "Z", .doc = "Of batch_norm_act; 0 if absent.", .dispensable = true},
      {.name = "Scale", .doc = "[C]; 1 if absent.", .dispensable = true, .keeps_float32 = true},
      {.name = "Bias", .doc = "[C]; 0 if absent.", .dispensable = true, .keeps_float32 = true},
      {.name = "SavedMean", .doc = "[C], of the forward op.", .keeps_float32 = true},
      {.name = "SavedVariance", .doc = "[C], of the forward op.", .keeps_float32 = true}};
  def.outputs = {{.name = "Y", .doc = "Like X."}};
  def.attrs = BatchNormAttrs();
  def.attrs.push_back(ChoiceAttr("act_type", "", {"", "relu"}, "The activation; empty: none."));
  def.infer = [](OpContext& context) {
    CheckVectors(context, {"Scale", "Bias", "SavedMean", "SavedVariance"},
                 ParseNormGeometry(context).channels, "channel");
    const TensorMeta& x = context.Input("X");
    if (context.HasInput("Z")) CheckInputLike(context, "Z", x.shape, x.dtype);
    context.SetOutputLike("Y", "X");
  };
  def.precision = Precision::kFollow;
  def.no_gradient_reason = "it is part of the backward pass only";
  def.in_place = {{"X", "Y"}, {"Z", "Y"}};
  def.layout_rule = LayoutRule::kChannelBlocked;
  def.layout_slots = {"X", "Z", "Y"};
  return def;
}

}  // namespace

void RegisterBatchNormReplay(OpRegistry& registry) {
  registry.Add(ReplayDef());
  AddBatchNormReplayKernels(registry, "batch_norm_replay");
}

}  // namespace skiff
