// Losses of classes.
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/onnx/onnx_node.h"

namespace skiff {
namespace {

// The negative log-likelihood of the labels, input 1, by the logarithms of probabilities, with the
// weights of the classes in input 2.
Variable NegativeLogLikelihood(const OnnxNode& node, const Variable& logs) {
  node.CheckInputs(2, 3);
  layers::NllLossOptions options = {.reduction = node.String("reduction", "mean")};
  if (node.Has(2)) options.weight = node.In(2);
  options.ignore_index = node.Int("ignore_index", options.ignore_index);
  return layers::NllLoss(logs, node.In(1), options);
}

void NegativeLogLikelihoodLoss(const OnnxNode& node) {
  node.Out(0, NegativeLogLikelihood(node, node.In(0)));
}

void SoftmaxCrossEntropyLoss(const OnnxNode& node) {
  const Variable logs = layers::LogSoftmax(node.In(0), 1);
  node.Out(0, NegativeLogLikelihood(node, logs));
  node.Out(1, logs);
}

}  // namespace

std::vector<OnnxConverterEntry> LossConverters() {
  return {
      {"NegativeLogLikelihoodLoss", NegativeLogLikelihoodLoss},
      {"SoftmaxCrossEntropyLoss", SoftmaxCrossEntropyLoss},
  };
}

}  // namespace skiff
