#include <algorithm>

#include "framework/base/error.h"
#include "tests/operators/nn/batch_norm_reference.h"

namespace skiff::harness {
namespace {

// The case of batch_norm, with the saved statistics as inputs.
OpCase ReplayCase(const NormSpec& spec, bool adds, bool rectifies) {
  OpCase op_case = NormCase(spec);
  op_case.name += StrCat(adds ? "_added" : "", rectifies ? "_rectified" : "");
  if (rectifies) op_case.attrs["act_type"] = std::string("relu");
  if (adds) op_case.inputs["Z"] = {Uniform(spec.x, 4)};
  op_case.type = "batch_norm_replay";
  const Shape channels = op_case.inputs.at("Mean")[0].shape;
  op_case.inputs.erase("Mean");
  op_case.inputs.erase("Variance");
  op_case.inputs["SavedMean"] = {Uniform(channels, 2)};
  op_case.inputs["SavedVariance"] = {Uniform(channels, 3, 0.5, 2.0)};
  op_case.outputs = {{"Y", 1}};
  op_case.loss_outputs = {};
  op_case.gradients = {};
  op_case.reference = [spec, rectifies](const Arrays& inputs) {
    Array y = inputs.at("X")[0];
    const Array& mean = inputs.at("SavedMean")[0];
    const Array& inverse = inputs.at("SavedVariance")[0];
    const size_t channels = mean.values.size();
    const size_t last = static_cast<size_t>(spec.x.rank()) - 1;
    size_t pixels = 1;
    for (size_t axis = 2; axis <= last; ++axis) pixels *= static_cast<size_t>(spec.x[axis]);
    for (size_t i = 0; i < y.values.size(); ++i) {
      const size_t c = spec.channels_last ? i % channels : i / pixels % channels;
      const double normalized =
          (y.values[i] - mean.values[c]) * inverse.values[c] * Or(inputs, "Scale", c, 1) +
          Or(inputs, "Bias", c, 0);
      if (!spec.unchanged) y.values[i] = normalized;
      if (inputs.contains("Z")) y.values[i] += inputs.at("Z")[0].values[i];
      if (rectifies) y.values[i] = std::max(0.0, y.values[i]);
    }
    return Arrays{{"Y", {std::move(y)}}};
  };
  return op_case;
}

}  // namespace

void AddBatchNormReplayCases(CaseList& cases) {
  const std::vector<NormSpec> specs = {
      {.name = "images", .x = {2, 3, 5, 4}},
      {.name = "whole_blocks", .x = {3, 16, 5, 6}},
      {.name = "part_of_a_block", .x = {2, 17, 5, 5}},
      {.name = "vectors", .x = {7, 5}},
      {.name = "channels_last", .x = {2, 4, 5, 3}, .channels_last = true},
      {.name = "without_scale_and_bias", .x = {2, 17, 4, 5}, .scale = false, .bias = false},
      {.name = "evaluation", .x = {2, 17, 4, 5}, .attrs = {{"is_test", true}}},
      {.name = "one_value_a_channel", .x = {1, 17, 1, 1}, .unchanged = true},
      {.name = "empty_batch_of_evaluation", .x = {0, 3, 4, 4}, .attrs = {{"is_test", true}}},
      {.name = "resnet_64_at_56", .x = {8, 64, 56, 56}, .benchmark_only = true},
  };
  for (const NormSpec& spec : specs) {
    for (const bool adds : {false, true}) {
      for (const bool rectifies : {false, true}) {
        cases.push_back(ReplayCase(spec, adds, rectifies));
      }
    }
  }
}

}  // namespace skiff::harness
