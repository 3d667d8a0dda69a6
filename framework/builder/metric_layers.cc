#include "framework/builder/metric_layers.h"

#include <utility>

#include "framework/builder/layer_call.h"
#include "framework/builder/tensor_layers.h"

namespace skiff::layers {

Variable Accuracy(const Variable& scores, const Variable& label, int64_t k, Site site) {
  const LayerCall call("accuracy", "", site);
  call.CheckedName(label);
  const TopKResult best = TopK(scores, k, site);
  Op op("accuracy");
  op.SetInput("Out", {best.values.name()}).SetInput("Indices", {best.indices.name()});
  op.SetInput("Label", {call.CheckedName(label)});
  op.SetOutput("Correct", {call.NewOutput().name()});
  op.SetOutput("Total", {call.NewOutput().name()});
  const Variable accuracy = call.AppendFor(std::move(op), "Accuracy");
  accuracy.StopGradient();
  return accuracy;
}

}  // namespace skiff::layers
