// instance_norm: each channel of an image with mean 0 and variance 1, scaled and shifted.
//
//   Y = (X - mean) / sqrt(variance + epsilon) · Scale + Bias
//
// SavedMean and SavedVariance are [N · C]; SavedVariance is 1 / sqrt(variance + epsilon). The
// gradient is that of kernels/group_normalization.h with one group per channel.
//
// Source: Ulyanov, Vedaldi & Lempitsky 2016; Fluid's instance_norm (PaddlePaddle 2.6).
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
  SKIFF_ENFORCE(x.rank() >= 2 && x.rank() <= 5, kInvalidArgument, context.op().type,
                ": X of shape ", x, ", expected a rank from 2 to 5");
  GroupGeometry geometry;
  geometry.batch = x[0];
  geometry.channels = geometry.groups = x[1];
  for (int axis = 2; axis < x.rank(); ++axis) {
    geometry.pixels =
        geometry.pixels < 0 || x[axis] < 0 ? -1 : MultiplyCounts(geometry.pixels, x[axis]);
  }
  return {.geometry = geometry,
          .statistic = GroupStatistic::kInverseDeviation,
          .mean_slot = "SavedMean",
          .statistic_slot = "SavedVariance"};
}

// The length of the statistics, batch · channels, or -1 if a dim is unknown.
int64_t StatisticCount(const GroupGeometry& geometry) {
  return geometry.batch < 0 || geometry.channels < 0
             ? -1
             : MultiplyCounts(geometry.batch, geometry.channels);
}

void Infer(OpContext& context) {
  const GroupGeometry geometry = ParseArguments(context).geometry;
  CheckVectors(context, {"Scale", "Bias"}, geometry.channels, "channel");
  context.SetOutputLike("Y", "X");
  for (const char* slot : {"SavedMean", "SavedVariance"}) {
    context.SetOutput(slot, {StatisticCount(geometry)}, context.Input("X").dtype);
  }
}

void InferGrad(OpContext& context) {
  const GroupGeometry geometry = ParseArguments(context).geometry;
  CheckVectors(context, {"Scale"}, geometry.channels, "channel");
  // Unlike Mean and Variance of group_norm, the statistics are vectors, as in Fluid.
  CheckVectors(context, {"SavedMean", "SavedVariance"}, StatisticCount(geometry),
               "image and channel");
  CheckInputLike(context, "Y@GRAD", context.Input("X").shape, context.Input("X").dtype);
  context.SetOutputLike("X@GRAD", "X");
  for (const char* slot : {"Scale@GRAD", "Bias@GRAD"}) {
    context.SetOutput(slot, {geometry.channels}, context.Input("X").dtype);
  }
}

OpDef InstanceNormDef() {
  OpDef def;
  def.type = "instance_norm";
  def.doc =
      "Y = (X - mean) / sqrt(variance + epsilon) * Scale + Bias, with mean and variance of each "
      "channel of each image.";
  def.inputs = {
      {.name = "X", .doc = "[N, C, ...], rank 2 to 5."},
      {.name = "Scale", .doc = "[C]; 1 if absent.", .dispensable = true, .keeps_float32 = true},
      {.name = "Bias", .doc = "[C]; 0 if absent.", .dispensable = true, .keeps_float32 = true}};
  def.outputs = {{.name = "Y", .doc = "Like X."},
                 {.name = "SavedMean",
                  .doc = "[N * C].",
                  .dispensable = true,
                  .intermediate = true,
                  .keeps_float32 = true},
                 {.name = "SavedVariance",
                  .doc = "[N * C], 1 / sqrt(variance + epsilon).",
                  .dispensable = true,
                  .intermediate = true,
                  .keeps_float32 = true}};
  def.attrs = {EpsilonAttr()};
  def.infer = Infer;
  def.precision = Precision::kFollow;
  def.in_place = {{"X", "Y"}};
  return def;
}

OpDef InstanceNormGradDef(OpDef* forward) {
  OpDef def = GradientOf(forward, {"X", "Scale", "SavedMean", "SavedVariance", "Y@GRAD"},
                         {"X@GRAD", "Scale@GRAD", "Bias@GRAD"});
  def.doc =
      "With z = (X - SavedMean) * SavedVariance, g = Y@GRAD * Scale and m pixels: X@GRAD = "
      "SavedVariance * (g - sum g / m - z * sum(g * z) / m); Scale@GRAD = the sum of Y@GRAD * z "
      "and Bias@GRAD that of Y@GRAD over images and pixels.";
  def.infer = InferGrad;
  def.in_place = {{"Y@GRAD", "X@GRAD"}};
  return def;
}

}  // namespace

void RegisterInstanceNorm(OpRegistry& registry) {
  OpDef def = InstanceNormDef();
  registry.Add(InstanceNormGradDef(&def));
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double, Float16, BFloat16>(
      "instance_norm", []<typename T>(PrepareContext& context) {
        return PrepareGroupNorm<T>(context, ParseArguments(context));
      });
  registry.AddCpuKernels<float, double, Float16, BFloat16>(
      "instance_norm_grad", []<typename T>(PrepareContext& context) {
        return PrepareGroupNormGrad<T>(context, ParseArguments(context));
      });
}

}  // namespace skiff
