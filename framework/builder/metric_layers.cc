#include "framework/builder/metric_layers.h"

#include <utility>

#include "framework/builder/layer_call.h"
#include "framework/builder/sequence.h"
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

EditDistances EditDistance(const Variable& input, const Variable& label,
                           const EditDistanceOptions& options, Site site) {
  const LayerCall call("edit_distance", "", site);
  const auto counted = [&](const Variable& ids) {
    call.CheckedName(ids);
    return options.ignored_tokens.empty() ? ids : SequenceErase(ids, options.ignored_tokens, site);
  };
  Op op("edit_distance");
  op.SetInput("Hyps", {counted(input).name()}).SetInput("Refs", {counted(label).name()});
  if (options.input_length.defined())
    op.SetInput("HypsLength", {call.CheckedName(options.input_length)});
  if (options.label_length.defined())
    op.SetInput("RefsLength", {call.CheckedName(options.label_length)});
  op.SetAttr("normalized", options.normalized);
  const Variable sequences = call.NewOutput();
  op.SetOutput("SequenceNum", {sequences.name()});
  const Variable distance = call.AppendFor(std::move(op));
  for (const Variable& made : {distance, sequences}) made.StopGradient();
  return {.distance = distance, .sequences = sequences};
}

}  // namespace skiff::layers
