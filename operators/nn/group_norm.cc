// group_norm: each group of neighbouring channels of an image with mean 0 and variance 1, scaled
// and shifted channel by channel.
//
//   Y = (X - mean) / sqrt(variance + epsilon) · Scale + Bias
//
// Mean and Variance (biased, without epsilon) are [N, groups]. The gradient is that of
// kernels/group_normalization.h. It doesn't need Y, which Fluid's gradient op takes too.
//
// Source: Wu & He 2018; Fluid's group_norm (PaddlePaddle 2.6).
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/nn/normalization/group_normalization.h"
#include "operators/nn/normalization/norm_arguments.h"

namespace skiff {
namespace {

GroupNormArguments ParseArguments(const OpContext& context) {
  const Shape& x = context.Input("X").shape;
  SKIFF_ENFORCE(x.rank() >= 2, kInvalidArgument, context.op().type, ": X of shape ", x,
                ", expected a rank of at least 2");
  GroupGeometry geometry;
  geometry.order = ParseChannelOrder(context, "data_layout");
  // All axes but batch and channels count as pixels, so X may have any rank from 2 on.
  const int channel_axis = geometry.order == ChannelOrder::kFirst ? 1 : x.rank() - 1;
  geometry.batch = x[0];
  geometry.channels = x[channel_axis];
  for (int axis = 1; axis < x.rank(); ++axis) {
    if (axis == channel_axis) continue;
    geometry.pixels =
        geometry.pixels < 0 || x[axis] < 0 ? -1 : MultiplyCounts(geometry.pixels, x[axis]);
  }
  geometry.groups = context.IntAttr("groups");
  SKIFF_ENFORCE(
      geometry.groups >= 1 && (geometry.channels == -1 || geometry.channels % geometry.groups == 0),
      kInvalidArgument, context.op().type, ": groups = ", geometry.groups,
      ", expected a divisor of the ", geometry.channels, " channels of X of shape ", x);
  return {.geometry = geometry,
          .statistic = GroupStatistic::kVariance,
          .mean_slot = "Mean",
          .statistic_slot = "Variance"};
}

void Infer(OpContext& context) {
  const GroupGeometry geometry = ParseArguments(context).geometry;
  CheckVectors(context, {"Scale", "Bias"}, geometry.channels, "channel");
  context.SetOutputLike("Y", "X");
  for (const char* slot : {"Mean", "Variance"}) {
    context.SetOutput(slot, {geometry.batch, geometry.groups}, context.Input("X").dtype);
  }
}

void InferGrad(OpContext& context) {
  const GroupGeometry geometry = ParseArguments(context).geometry;
  CheckVectors(context, {"Scale", "Bias"}, geometry.channels, "channel");
  for (const char* slot : {"Y", "Y@GRAD"}) {
    if (!context.HasInput(slot)) continue;
    CheckInputLike(context, slot, context.Input("X").shape, context.Input("X").dtype);
  }
  for (const char* slot : {"Mean", "Variance"}) {
    CheckInputLike(context, slot, {geometry.batch, geometry.groups}, context.Input("X").dtype);
  }
  context.SetOutputLike("X@GRAD", "X");
  for (const char* slot : {"Scale@GRAD", "Bias@GRAD"}) {
    context.SetOutput(slot, {geometry.channels}, context.Input("X").dtype);
  }
}

std::vector<AttrDef> Attributes() {
  return {EpsilonAttr(),
          {.name = "groups",
           .type = AttrType::kInt,
           .default_value = int32_t{-1},
           .doc = "Number of groups, a divisor of the channels; must be set."},
          ChannelOrderAttr("data_layout")};
}

OpDef GroupNormDef() {
  OpDef def;
  def.type = "group_norm";
  def.doc =
      "Y = (X - mean) / sqrt(variance + epsilon) * Scale + Bias, with mean and variance of each "
      "group of neighbouring channels of each image.";
  def.inputs = {
      {.name = "X", .doc = "[N, C, ...] or [N, ..., C] (data_layout), of rank 2 or more."},
      {.name = "Scale", .doc = "[C]; 1 if absent.", .dispensable = true, .keeps_float32 = true},
      {.name = "Bias", .doc = "[C]; 0 if absent.", .dispensable = true, .keeps_float32 = true}};
  def.outputs = {{.name = "Y", .doc = "Like X."},
                 {.name = "Mean",
                  .doc = "[N, groups].",
                  .dispensable = true,
                  .intermediate = true,
                  .keeps_float32 = true},
                 {.name = "Variance",
                  .doc = "[N, groups], biased.",
                  .dispensable = true,
                  .intermediate = true,
                  .keeps_float32 = true}};
  def.attrs = Attributes();
  def.infer = Infer;
  def.precision = Precision::kFollow;
  def.in_place = {{"X", "Y"}};
  return def;
}

OpDef GroupNormGradDef(OpDef* forward) {
  OpDef def = GradientOf(
      forward,
      {"X", "Scale", ForShape("Bias"), Optional(ForShape("Y")), "Mean", "Variance", "Y@GRAD"},
      {"X@GRAD", "Scale@GRAD", "Bias@GRAD"});
  def.doc =
      "With h = 1 / sqrt(Variance + epsilon), z = (X - Mean) * h, g = Y@GRAD * Scale and groups of "
      "m elements: X@GRAD = h * (g - sum g / m - z * sum(g * z) / m); Scale@GRAD = the sum of "
      "Y@GRAD * z and Bias@GRAD that of Y@GRAD over images and pixels.";
  def.infer = InferGrad;
  def.in_place = {{"Y@GRAD", "X@GRAD"}};
  return def;
}

}  // namespace

void RegisterGroupNorm(OpRegistry& registry) {
  OpDef def = GroupNormDef();
  registry.Add(GroupNormGradDef(&def));
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double, Float16, BFloat16>(
      "group_norm", []<typename T>(PrepareContext& context) {
        return PrepareGroupNorm<T>(context, ParseArguments(context));
      });
  registry.AddCpuKernels<float, double, Float16, BFloat16>(
      "group_norm_grad", []<typename T>(PrepareContext& context) {
        return PrepareGroupNormGrad<T>(context, ParseArguments(context));
      });
}

}  // namespace skiff
