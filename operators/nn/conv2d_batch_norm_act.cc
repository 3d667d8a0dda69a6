// conv2d_batch_norm_act: conv2d, batch_norm by running statistics, an addition and an activation in
// one op, for inference.
//
//   Output = act(Scale · (conv2d(Input, Filter) - Mean) / sqrt(Variance + epsilon) + Bias + Z)
//
// The pass fold_batch_norm creates it. Fluid has no counterpart: its conv_bn_fuse_pass changes the
// parameters in the scope. Kernels multiply the filters by Scale / sqrt(Variance + epsilon) once,
// which rounds differently from a normalization after the convolution.
#include <utility>

#include "operators/common/input_checks.h"
#include "operators/nn/convolution/convolution.h"
#include "operators/nn/convolution/convolution_epilogue.h"
#include "operators/nn/convolution/convolution_geometry.h"
#include "operators/nn/normalization/norm_arguments.h"

namespace skiff {

void RegisterConv2dBatchNormAct(OpRegistry& registry) {
  OpDef def = ConvolutionDef(
      "conv2d_batch_norm_act",
      "Output = act(Scale * (conv2d(Input, Filter) - Mean) / sqrt(Variance + epsilon) + Bias + Z): "
      "conv2d, batch_norm by running statistics, an addition and an activation in one.");
  for (SlotDef& slot : EpilogueSlots()) def.inputs.push_back(std::move(slot));
  for (AttrDef& attr : EpilogueAttrs()) def.attrs.push_back(std::move(attr));
  def.infer = [infer = def.infer](OpContext& context) {
    infer(context);
    const Convolution conv = ParseConvolution(context);
    CheckVectors(context, {"Scale", "Bias", "Mean", "Variance"}, conv.output.channels,
                 "output channel for Input");
    if (context.HasInput("Z")) {
      CheckInputLike(context, "Z", ShapeOf(conv.output, conv.order), context.Input("Input").dtype);
    }
  };
  def.no_gradient_reason = "it is made for inference; training keeps conv2d and batch_norm";
  def.in_place = {{"Z", "Output"}};
  def.layout_slots.push_back("Z");
  registry.Add(std::move(def));
  AddPlainConvolution(registry, "conv2d_batch_norm_act");
  AddOnednnConvolution(registry, "conv2d_batch_norm_act");
  AddWinogradConvolution(registry, "conv2d_batch_norm_act");
}

}  // namespace skiff
