#include "framework/builder/loss.h"

#include <utility>

#include "framework/builder/layer_call.h"
#include "framework/builder/math.h"

namespace skiff::layers {

Variable CrossEntropy(const Variable& x, const Variable& label, const CrossEntropyOptions& options,
                      Site site) {
  const LayerCall call("cross_entropy", "", site);
  Op op("cross_entropy");
  op.SetInput("X", {call.Use(x)}).SetInput("Label", {call.Use(label)});
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
  op.SetInput("Logits", {call.Use(logits)}).SetInput("Label", {call.Use(label)});
  op.SetAttr("soft_label", options.soft_label).SetAttr("ignore_index", options.ignore_index);
  op.SetAttr("numeric_stable_mode", options.numeric_stable_mode).SetAttr("axis", options.axis);
  const Variable softmax = call.NewOutput();
  op.SetOutput("Softmax", {softmax.name()});
  return {call.AppendFor(std::move(op), "Loss"), softmax};
}

Variable SquareErrorCost(const Variable& x, const Variable& label, Site site) {
  return Square(ElementwiseSub(x, label, {}, site), site);
}

}  // namespace skiff::layers
