#include "operators/nn/normalization/batch_norm_definition.h"

#include <algorithm>
#include <iterator>

#include "framework/op/grad.h"
#include "operators/common/input_checks.h"
#include "operators/nn/normalization/batch_norm_passes.h"
#include "operators/nn/normalization/norm_arguments.h"

namespace skiff {

std::vector<AttrDef> BatchNormAttrs() {
  const auto flag = [](StaticText name, StaticText doc) {
    return AttrDef{.name = name, .type = AttrType::kBool, .default_value = false, .doc = doc};
  };
  return {
      flag("is_test", "Evaluation: Mean and Variance are used and stay."),
      {.name = "momentum",
       .type = AttrType::kFloat,
       .default_value = 0.9f,
       .doc = "How much of the running statistics a step keeps; MomentumTensor goes before it."},
      EpsilonAttr(),
      ChannelOrderAttr("data_layout"),
      flag("use_global_stats", "Mean and Variance are used, in training too."),
      flag("trainable_statistics", "The batch's statistics are used even under is_test."),
  };
}

bool UsesGlobalStatistics(const OpContext& context) {
  return context.Attr<bool>("use_global_stats") ||
         (context.Attr<bool>("is_test") && !context.Attr<bool>("trainable_statistics"));
}

OpDef BatchNormDefinition() {
  OpDef def;
  def.inputs = {
      {.name = "X", .doc = "[N, C, ...] or [N, ..., C] (data_layout), rank 2 to 5."},
      {.name = "Scale", .doc = "[C]; 1 if absent.", .dispensable = true, .keeps_float32 = true},
      {.name = "Bias", .doc = "[C]; 0 if absent.", .dispensable = true, .keeps_float32 = true},
      {.name = "Mean", .doc = "[C], the running mean.", .keeps_float32 = true},
      {.name = "Variance", .doc = "[C], the running variance.", .keeps_float32 = true},
      {.name = "MomentumTensor",
       .doc = "One value, instead of momentum.",
       .dispensable = true,
       .keeps_float32 = true}};
  def.outputs = {
      {.name = "Y", .doc = "Like X."},
      {.name = "MeanOut",
       .doc = "[C], the new running mean; usually the variable of Mean.",
       .dispensable = true,
       .keeps_float32 = true},
      {.name = "VarianceOut",
       .doc = "[C], the new running variance.",
       .dispensable = true,
       .keeps_float32 = true},
      {.name = "SavedMean",
       .doc = "[C], the mean that Y was made with.",
       .dispensable = true,
       .intermediate = true,
       .keeps_float32 = true},
      {.name = "SavedVariance",
       .doc = "[C], 1 / sqrt(variance + epsilon) that Y was made with.",
       .dispensable = true,
       .intermediate = true,
       .keeps_float32 = true},
      {.name = "ReserveSpace", .doc = "Empty.", .dispensable = true, .intermediate = true},
      {.name = "BatchMean",
       .doc = "float64 [C], the batch's mean, by which the running mean is updated.",
       .dispensable = true,
       .keeps_float32 = true},
      {.name = "BatchVariance",
       .doc = "float64 [C], the batch's variance; -1 where a run updates no running statistics.",
       .dispensable = true,
       .keeps_float32 = true}};
  def.attrs = BatchNormAttrs();
  def.infer = [](OpContext& context) {
    const NormGeometry geometry = ParseNormGeometry(context);
    CheckVectors(context, {"Scale", "Bias", "Mean", "Variance"}, geometry.channels, "channel");
    CheckOneElement(context, "MomentumTensor");
    const DType dtype = context.Input("X").dtype;
    if (context.HasInput("MomentumTensor")) {
      CheckInputLike(context, "MomentumTensor", context.Input("MomentumTensor").shape, dtype);
    }
    context.SetOutputLike("Y", "X");
    for (const char* slot : {"MeanOut", "VarianceOut", "SavedMean", "SavedVariance"})
      context.SetOutput(slot, {geometry.channels}, dtype);
    context.SetOutput("ReserveSpace", {0}, dtype);
    for (const StaticText slot : context.def().batch_moments)
      context.SetOutput(slot, {geometry.channels}, DType::kFloat64);
  };
  def.precision = Precision::kFollow;
  def.running_state = {{"Mean", "MeanOut"}, {"Variance", "VarianceOut"}};
  def.batch_moments = {"BatchMean", "BatchVariance"};
  def.running_momentum = "momentum";
  def.replayed_by = "batch_norm_replay";
  def.in_place = {{"X", "Y"}};
  std::ranges::copy(def.running_state, std::back_inserter(def.in_place));
  def.layout_rule = LayoutRule::kChannelBlocked;
  def.layout_slots = {"X", "Y"};
  return def;
}

OpDef BatchNormGradDefinition() {
  OpDef def;
  def.inputs = {
      {.name = "X", .doc = "Of the forward op."},
      {.name = "Scale", .doc = "Of the forward op.", .dispensable = true, .keeps_float32 = true},
      {.name = "Bias",
       .doc = "Of the forward op.",
       .dispensable = true,
       .shape_only = true,
       .keeps_float32 = true},
      {.name = "Mean",
       .doc = "MeanOut again; unused.",
       .dispensable = true,
       .shape_only = true,
       .keeps_float32 = true},
      {.name = "Variance",
       .doc = "VarianceOut again; unused.",
       .dispensable = true,
       .shape_only = true,
       .keeps_float32 = true},
      {.name = "MeanOut",
       .doc = "Read with global statistics.",
       .dispensable = true,
       .keeps_float32 = true},
      {.name = "VarianceOut",
       .doc = "Read with global statistics.",
       .dispensable = true,
       .keeps_float32 = true},
      {.name = "SavedMean",
       .doc = "Read with the batch's statistics.",
       .dispensable = true,
       .keeps_float32 = true},
      {.name = "SavedVariance",
       .doc = "Read with the batch's statistics.",
       .dispensable = true,
       .keeps_float32 = true},
      {.name = "ReserveSpace", .doc = "Unused.", .dispensable = true, .shape_only = true},
      {.name = "Y@GRAD", .doc = "The gradient of Y."}};
  def.outputs = {{.name = "X@GRAD", .doc = "Like X.", .dispensable = true},
                 {.name = "Scale@GRAD", .doc = "[C].", .dispensable = true, .keeps_float32 = true},
                 {.name = "Bias@GRAD", .doc = "[C].", .dispensable = true, .keeps_float32 = true}};
  def.attrs = BatchNormAttrs();
  def.infer = [](OpContext& context) {
    const NormGeometry geometry = ParseNormGeometry(context);
    CheckVectors(context,
                 {"Scale", "Bias", "Mean", "Variance", "MeanOut", "VarianceOut", "SavedMean",
                  "SavedVariance"},
                 geometry.channels, "channel");
    const TensorMeta& x = context.Input("X");
    CheckInputLike(context, "Y@GRAD", x.shape, x.dtype);
    context.SetOutputLike("X@GRAD", "X");
    for (const char* slot : {"Scale@GRAD", "Bias@GRAD"})
      context.SetOutput(slot, {geometry.channels}, x.dtype);
  };
  def.precision = Precision::kFollow;
  def.in_place = {{"Y@GRAD", "X@GRAD"}};
  def.layout_rule = LayoutRule::kChannelBlocked;
  def.layout_slots = {"X", "Y@GRAD", "X@GRAD"};
  return def;
}

std::vector<Op> BatchNormGradOps(const GradContext& context, const GradRule& usual) {
  std::vector<Op> ops = usual(context);
  const Op& forward = context.forward();
  if (forward.Attr<bool>("is_test", false) || forward.Attr<bool>("use_global_stats", false)) {
    ops[0].SetInput("Mean", context.Output("MeanOut"));
    ops[0].SetInput("Variance", context.Output("VarianceOut"));
  }
  return ops;
}

GradRule BatchNormGradRule(StaticText type) {
  // ReserveSpace is always empty here, but programs carry it.
  return [usual = GradOp(type,
                         {"X", "Scale", "Bias", "MeanOut", "VarianceOut", "SavedMean",
                          "SavedVariance", "ReserveSpace", "Y@GRAD"},
                         {"X@GRAD", "Scale@GRAD", "Bias@GRAD"})](const GradContext& context) {
    return BatchNormGradOps(context, usual);
  };
}

}  // namespace skiff
