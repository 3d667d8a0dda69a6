#include "framework/builder/loss.h"

#include <utility>

#include "framework/builder/activation.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/tensor_layers.h"
#include "framework/tensor/dims_agree.h"
#include "framework/tensor/shape.h"

namespace skiff::layers {
namespace {

void SetIfDefined(const LayerCall& call, const char* slot, const Variable& x, Op* op) {
  if (x.defined()) op->SetInput(slot, {call.CheckedName(x)});
}

// Ops of Fluid broadcast [N] and [N, 1] to [N, N], or refuse them in terms of their slots.
void CheckSameDims(const LayerCall& call, const Variable& x, const Variable& label) {
  call.CheckedNames({x, label});
  call.Enforce(DimsAgree(x.dims(), label.dims()), "\"", x.name(), "\" is of shape ",
               Shape(x.dims()), " and \"", label.name(), "\" of shape ", Shape(label.dims()),
               ", expected one shape; of [N], Unsqueeze with axis 1 makes [N, 1], and of [N, 1], "
               "Squeeze with axis 1 makes [N]");
}

}  // namespace

Variable CrossEntropy(const Variable& x, const Variable& label, const CrossEntropyOptions& options,
                      Site site) {
  const LayerCall call("cross_entropy", "", site);
  Op op("cross_entropy");
  op.SetInput("X", {call.CheckedName(x)}).SetInput("Label", {call.CheckedName(label)});
  op.SetAttr("soft_label", options.soft_label).SetAttr("ignore_index", options.ignore_index);
  return call.AppendFor(std::move(op), "Y");
}

Variable SoftmaxWithCrossEntropy(const Variable& logits, const Variable& label,
                                 const SoftmaxWithCrossEntropyOptions& options, Site site) {
  return SoftmaxWithCrossEntropyAndSoftmax(logits, label, options, site).loss;
}

SoftmaxLoss SoftmaxWithCrossEntropyAndSoftmax(const Variable& logits, const Variable& label,
                                              const SoftmaxWithCrossEntropyOptions& options,
                                              Site site) {
  const LayerCall call("softmax_with_cross_entropy", "", site);
  Op op("softmax_with_cross_entropy");
  op.SetInput("Logits", {call.CheckedName(logits)}).SetInput("Label", {call.CheckedName(label)});
  op.SetAttr("soft_label", options.soft_label).SetAttr("ignore_index", options.ignore_index);
  op.SetAttr("numeric_stable_mode", options.numeric_stable_mode).SetAttr("axis", options.axis);
  const Variable softmax = call.NewOutput();
  op.SetOutput("Softmax", {softmax.name()});
  return {call.AppendFor(std::move(op), "Loss"), softmax};
}

Variable SquareErrorCost(const Variable& x, const Variable& label, Site site) {
  CheckSameDims(LayerCall("square_error_cost", "", site), x, label);
  return Square(ElementwiseSub(x, label, {}, site), site);
}

Variable SigmoidCrossEntropyWithLogits(const Variable& x, const Variable& label,
                                       const SigmoidCrossEntropyWithLogitsOptions& options,
                                       Site site) {
  const LayerCall call("sigmoid_cross_entropy_with_logits", "", site);
  CheckSameDims(call, x, label);
  Op op("sigmoid_cross_entropy_with_logits");
  op.SetInput("X", {call.CheckedName(x)}).SetInput("Label", {call.CheckedName(label)});
  SetIfDefined(call, "pos_weight", options.pos_weight, &op);
  op.SetAttr("normalize", options.normalize).SetAttr("ignore_index", options.ignore_index);
  return call.AppendFor(std::move(op));
}

Variable BinaryCrossEntropyWithLogits(const Variable& x, const Variable& label,
                                      const BinaryCrossEntropyWithLogitsOptions& options,
                                      Site site) {
  const Variable loss = SigmoidCrossEntropyWithLogits(x, label, {}, site);
  if (!options.pos_weight.defined()) return loss;
  // The rest, (pos_weight - 1) · label · log(1 + exp(-x)). So nothing cancels for a weight above 1.
  const Variable of_ones = SigmoidCrossEntropyWithLogits(x, OnesLike(label, site), {}, site);
  const Variable factor =
      ElementwiseMul(label, Scale(options.pos_weight, {.bias = -1.0f}, site), {}, site);
  return ElementwiseAdd(loss, ElementwiseMul(factor, of_ones, {}, site), {}, site);
}

Variable BinaryCrossEntropy(const Variable& x, const Variable& label, Site site) {
  const LayerCall call("bce_loss", "", site);
  CheckSameDims(call, x, label);
  Op op("bce_loss");
  op.SetInput("X", {call.CheckedName(x)}).SetInput("Label", {call.CheckedName(label)});
  return call.AppendFor(std::move(op));
}

Variable LogLoss(const Variable& x, const Variable& label, float epsilon, Site site) {
  const LayerCall call("log_loss", "", site);
  CheckSameDims(call, x, label);
  Op op("log_loss");
  op.SetInput("Predicted", {call.CheckedName(x)}).SetInput("Labels", {call.CheckedName(label)});
  op.SetAttr("epsilon", epsilon);
  return call.AppendFor(std::move(op), "Loss");
}

Variable HuberLoss(const Variable& x, const Variable& label, float delta, Site site) {
  const LayerCall call("huber_loss", "", site);
  CheckSameDims(call, x, label);
  Op op("huber_loss");
  op.SetInput("X", {call.CheckedName(x)})
      .SetInput("Y", {call.CheckedName(label)})
      .SetAttr("delta", delta);
  op.SetOutput("Residual", {call.NewOutput().name()});
  return call.AppendFor(std::move(op));
}

Variable SmoothL1(const Variable& x, const Variable& y, const SmoothL1Options& options, Site site) {
  const LayerCall call("smooth_l1_loss", "", site);
  CheckSameDims(call, x, y);
  Op op("smooth_l1_loss");
  op.SetInput("X", {call.CheckedName(x)})
      .SetInput("Y", {call.CheckedName(y)})
      .SetAttr("sigma", options.sigma);
  SetIfDefined(call, "InsideWeight", options.inside_weight, &op);
  SetIfDefined(call, "OutsideWeight", options.outside_weight, &op);
  op.SetOutput("Diff", {call.NewOutput().name()});
  return call.AppendFor(std::move(op));
}

Variable KldivLoss(const Variable& x, const Variable& target, const std::string& reduction,
                   Site site) {
  const LayerCall call("kldiv_loss", "", site);
  CheckSameDims(call, x, target);
  Op op("kldiv_loss");
  op.SetInput("X", {call.CheckedName(x)}).SetInput("Target", {call.CheckedName(target)});
  op.SetAttr("reduction", reduction);
  return call.AppendFor(std::move(op), "Loss");
}

Variable MarginRankLoss(const Variable& label, const Variable& left, const Variable& right,
                        float margin, Site site) {
  const LayerCall call("margin_rank_loss", "", site);
  CheckSameDims(call, left, right);
  CheckSameDims(call, left, label);
  Op op("margin_rank_loss");
  op.SetInput("Label", {call.CheckedName(label)}).SetInput("X1", {call.CheckedName(left)});
  op.SetInput("X2", {call.CheckedName(right)}).SetAttr("margin", margin);
  op.SetOutput("Activated", {call.NewOutput().name()});
  return call.AppendFor(std::move(op));
}

Variable NllLoss(const Variable& x, const Variable& label, const NllLossOptions& options,
                 Site site) {
  const LayerCall call("nll_loss", "", site);
  Op op("nll_loss");
  op.SetInput("X", {call.CheckedName(x)}).SetInput("Label", {call.CheckedName(label)});
  SetIfDefined(call, "Weight", options.weight, &op);
  op.SetAttr("ignore_index", options.ignore_index).SetAttr("reduction", options.reduction);
  op.SetOutput("Total_weight", {call.NewSavedOutput()});
  return call.AppendFor(std::move(op));
}

Variable LabelSmooth(const Variable& label, const LabelSmoothOptions& options, Site site) {
  const LayerCall call("label_smooth", "", site);
  Op op("label_smooth");
  op.SetInput("X", {call.CheckedName(label)}).SetAttr("epsilon", options.epsilon);
  SetIfDefined(call, "PriorDist", options.prior_dist, &op);
  return call.AppendFor(std::move(op));
}

Variable WarpCtc(const Variable& logits, const Variable& label, const WarpCtcOptions& options,
                 Site site) {
  const LayerCall call("warpctc", "", site);
  Op op("warpctc");
  op.SetInput("Logits", {call.CheckedName(logits)}).SetInput("Label", {call.CheckedName(label)});
  SetIfDefined(call, "LogitsLength", options.logits_length, &op);
  SetIfDefined(call, "LabelLength", options.label_length, &op);
  op.SetAttr("blank", options.blank).SetAttr("norm_by_times", options.norm_by_times);
  op.SetOutput("WarpCTCGrad", {call.NewSavedOutput()});
  return call.AppendFor(std::move(op), "Loss");
}

}  // namespace skiff::layers
