#include "framework/transpiler/fuse_batch_norm_act_pass.h"

#include <cstddef>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/transpiler/fusion_list.h"

namespace skiff {
namespace {

constexpr char kNorm[] =
    "{Y: [y], MeanOut: [mean], SavedMean: [saved_mean]} ="
    "    batch_norm(X: [x], Scale: [scale], Bias: [bias])\n";
// A batch_norm_grad needn't read both means.
constexpr char kNormGradient[] =
    "{X@GRAD: [dx]} = batch_norm_grad(X: [x], Scale: [scale], Bias: [bias], MeanOut: [mean_read],"
    "                                 SavedMean: [saved_mean_read], Y@GRAD: [dy])\n";

AttributeMap NormAttrs(const Match& match) { return match.MakerOf("y").op->attrs; }
AttributeMap GradientAttrs(const Match& match) { return match.MakerOf("dx").op->attrs; }

// Whether the batch_norm_grad is the gradient of the fused batch norm: it reads a mean that the
// batch norm has saved, and has its attributes. The batch_norm_grad may also run earlier than it
// does.
bool IsGradient(const Match& match) {
  const auto is_read = [&](const std::string& mean) {
    // One that neither of the two has is no connection between them.
    return match[mean] && match[mean + "_read"] == match[mean];
  };
  return (is_read("saved_mean") || is_read("mean")) && match.HaveSameAttributes("dx", "y") &&
         match.rewrite.WritesArenaOnly(match.MakerOf("dx"));
}

Fusion NormRelu() {
  return {.before = StrCat(kNorm, "{Out: [r]} = relu(X: [y])"),
          .after = {{.op = "{Y: [r]} = batch_norm_act()",
                     .at = "r",
                     .origin = "y",
                     .arguments_of = "y",
                     .attributes = NormAttrs}}};
}

// The sign of r follows from x, so r needn't be kept.
Fusion NormReluGradient() {
  return {.gradient_of = "r",
          .before = StrCat("{X@GRAD: [dy]} = relu_grad(Out: [r], Out@GRAD: [dr])\n", kNormGradient),
          .condition = IsGradient,
          .after = {{.op = "{X@GRAD: [dx]} = batch_norm_act_grad(Y@GRAD: [dr])",
                     .at = "dx",
                     .arguments_of = "dx",
                     .attributes = GradientAttrs}}};
}

// Whether y and z have one shape, and no later batch norm makes z alone for the addition. (Then
// the later one is fused.)
bool AddsToNorm(const Match& match) {
  const ValueId z = match["z"];
  if (!z || z == match["y"] || match.ShapeOf("z") != match.ShapeOf("y")) return false;
  const size_t other = match.rewrite.WriterOf(z);
  return other == PlanUses::kNobody || other < match.makers.at("y") ||
         !match.rewrite.Is(other, "batch_norm") ||
         match.plan.instructions[other].OutputIn("Y") != z ||
         !match.rewrite.MayVanish(z, {match.makers.at("s")});
}

// `y` and `z`: the slots of the addition for the normalized value and the other operand.
Fusion NormAddRelu(const std::string& y, const std::string& z) {
  return {.before = StrCat(kNorm, "{Out: [s]} = elementwise_add(", y, ": [y], ", z, ": [z])\n",
                           "{Out: [q]} = relu(X: [s])"),
          .condition = AddsToNorm,
          .after = {{.op = "{Y: [q]} = batch_norm_act(Z: [z])",
                     .at = "q",
                     .origin = "y",
                     .arguments_of = "y",
                     .attributes = NormAttrs}}};
}

// The sign of q depends on the sum, which only q shows. It stands where the addition's gradient
// did, since dz may be read before the batch norm's gradient runs.
Fusion NormAddReluGradient(const std::string& y, const std::string& z) {
  return {
      .gradient_of = "q",
      .before = StrCat("{X@GRAD: [ds]} = relu_grad(Out: [q], Out@GRAD: [dq])\n", "{", y,
                       "@GRAD: [dy], ", z, "@GRAD: [dz]} =\n", "elementwise_add_grad(", z,
                       ": [z], Out@GRAD: [ds])\n", kNormGradient),
      .condition = IsGradient,
      .after = {{.op = "{X@GRAD: [dx], Z@GRAD: [dz]} = batch_norm_act_grad(Y@GRAD: [dq], Y: [q])",
                 .at = "dz",
                 .origin = "dx",
                 .arguments_of = "dx",
                 .attributes = GradientAttrs}}};
}

}  // namespace

PassReport FuseBatchNormActPass::Apply(const PassContext& context, Plan* plan) const {
  static const auto& fusions = *new FusionList{NormRelu(),
                                               NormReluGradient(),
                                               NormAddRelu("X", "Y"),
                                               NormAddRelu("Y", "X"),
                                               NormAddReluGradient("X", "Y"),
                                               NormAddReluGradient("Y", "X")};
  return ApplyFusions(context, fusions, plan);
}

}  // namespace skiff
