// Losses of classes.
#include <algorithm>
#include <utility>

#include "framework/builder/control.h"
#include "framework/builder/math.h"
#include "framework/builder/tensor.h"
#include "framework/onnx/onnx_node.h"

namespace skiff {
namespace {

using Ints = std::vector<int64_t>;

// The negative log-likelihood of `label` [N, …] by the logarithms of probabilities [N, C, …], with
// weights of the classes, undefined for none.
Variable NegativeLogLikelihood(const OnnxNode& node, const Variable& logs, Variable label,
                               const Variable& class_weights) {
  const std::string reduction = node.String("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean") {
    node.Invalid("reduction = \"", reduction, "\"");
  }
  if (label.dtype() != DType::kInt64) label = layers::Cast(label, DType::kInt64);
  const bool ignores = node.HasAttr("ignore_index");
  const auto ignored = static_cast<double>(node.Int("ignore_index", 0));
  Variable counts;  // 1 where the label counts
  Variable place = label;
  if (ignores) {
    const Variable is_ignored = layers::Equal(label, ignored);
    counts = layers::Cast(layers::Equal(label, ignored), logs.dtype()) * -1.0 + 1.0;
    place = layers::Where(is_ignored, layers::FullLike(label, 0.0), label);
  }
  const Variable picked = layers::TakeAlongAxis(logs, layers::Unsqueeze(place, {1}), 1);
  Variable loss = -layers::Squeeze(picked, {1});
  Variable weights = counts;
  if (class_weights.defined()) {
    const Variable flat = layers::Gather(class_weights, layers::Reshape(place, {-1}));
    Variable each = layers::FullLike(loss, 1.0);
    // The shape of the label, also where only a run knows it.
    each = layers::ReshapeTo(flat, layers::ShapeOf(each));
    weights = counts.defined() ? counts * each : each;
  }
  // An ignored element isn't looked at, even if it is infinite.
  if (ignores) loss = layers::Where(layers::Cast(counts, DType::kBool), loss, 0.0);
  if (weights.defined()) loss = loss * weights;
  if (reduction == "none") return loss;
  const Variable sum = layers::ReduceSum(loss);
  if (reduction == "sum") return sum;
  return weights.defined() ? sum / layers::ReduceSum(weights) : layers::ReduceMean(loss);
}

void NegativeLogLikelihoodLoss(const OnnxNode& node) {
  node.CheckInputs(2, 3);
  const Variable weights = node.Has(2) ? node.In(2) : Variable();
  node.Out(0, NegativeLogLikelihood(node, node.In(0), node.In(1), weights));
}

void SoftmaxCrossEntropyLoss(const OnnxNode& node) {
  node.CheckInputs(2, 3);
  const Variable logs = layers::LogSoftmax(node.In(0), 1);
  const Variable weights = node.Has(2) ? node.In(2) : Variable();
  node.Out(0, NegativeLogLikelihood(node, logs, node.In(1), weights));
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
