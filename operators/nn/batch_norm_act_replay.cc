// batch_norm_act_replay: what batch_norm_act computed, once more, bit for bit.
//
//   Y = max(0, Scale · (X - SavedMean) · SavedVariance + Bias)
//
// with X of the forward op and what it saved (SavedVariance is 1 / sqrt(variance + epsilon)). It is
// made by the pass replay_activation, so that Y need not be kept from the forward to the backward
// pass: X is kept anyway.
#include "framework/op/registry.h"
#include "operators/nn/batch_norm_kernels_shared.h"
#include "operators/nn/batch_norm_op_shared.h"
#include "operators/nn/batch_norm_shared.h"
#include "operators/nn/norm_arguments_shared.h"

namespace skiff {
namespace {

OpDef ReplayDef() {
  OpDef def;
  def.type = "batch_norm_act_replay";
  def.doc =
      "Y = max(0, Scale * (X - SavedMean) * SavedVariance + Bias): Y of batch_norm_act "
      "again, "
      "from its X and what it saved. A batch of one value a channel is only rectified, as there.";
  def.inputs = {{.name = "X", .doc = "Of batch_norm_act, without Z."},
                {.name = "Scale", .doc = "[C]; 1 if absent.", .dispensable = true},
                {.name = "Bias", .doc = "[C]; 0 if absent.", .dispensable = true},
                {.name = "SavedMean", .doc = "[C], of batch_norm_act."},
                {.name = "SavedVariance", .doc = "[C], of batch_norm_act."}};
  def.outputs = {{.name = "Y", .doc = "Like X."}};
  def.attrs = BatchNormAttrs();
  def.infer = [](OpContext& context) {
    CheckVectors(context, {"Scale", "Bias", "SavedMean", "SavedVariance"},
                 ParseNormGeometry(context).channels, "channel");
    context.SetOutputLike("Y", "X");
  };
  def.no_gradient_reason = "it stands in the backward pass only";
  def.in_place = {{"X", "Y"}};
  def.layout_rule = LayoutRule::kChannelBlocked;
  def.layout_slots = {"X", "Y"};
  return def;
}

}  // namespace

void RegisterBatchNormActReplay(OpRegistry& registry) {
  registry.Add(ReplayDef());
  AddBatchNormReplayKernels(registry, "batch_norm_act_replay");
}

}  // namespace skiff
