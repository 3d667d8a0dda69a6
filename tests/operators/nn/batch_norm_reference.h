// Batch normalization in float64, and cases made from a description.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/operators/nn/image_reference.h"

namespace skiff::harness {

struct NormSpec {
  std::string name;
  Shape x;  // N, C, … or N, …, C
  bool channels_last = false;
  bool global = false;     // expected to use Mean and Variance
  bool unchanged = false;  // expected to pass X on
  bool scale = true;
  bool bias = true;
  double offset = 0;  // of X
  double momentum = 0.9f;
  double epsilon = 1e-5f;
  double momentum_tensor = -1;  // none
  AttributeMap attrs;
  // For fields that the table of cases has no column for.
  double float32_tolerance = 0;
  double gradient_tolerance = 0;
  bool benchmark_only = false;
};

inline double Or(const Arrays& inputs, const std::string& slot, size_t c, double otherwise) {
  const auto it = inputs.find(slot);
  return it == inputs.end() ? otherwise : it->second[0].values[c];
}

inline Arrays NormReference(const NormSpec& spec, const Arrays& inputs) {
  const Array& x = inputs.at("X")[0];
  const Array& old_mean = inputs.at("Mean")[0];
  const Array& old_variance = inputs.at("Variance")[0];
  const auto channels = static_cast<size_t>(old_mean.shape[0]);
  size_t pixels = 1;
  for (int axis = 1; axis < spec.x.rank(); ++axis) pixels *= static_cast<size_t>(spec.x[axis]);
  pixels /= channels;
  const auto channel_of = [&](size_t i) {
    return spec.channels_last ? i % channels : i / pixels % channels;
  };
  const auto count = static_cast<double>(x.values.size() / channels);
  std::vector<double> mean(channels, 0.0);
  std::vector<double> variance(channels, 0.0);
  for (size_t i = 0; i < x.values.size(); ++i) mean[channel_of(i)] += x.values[i] / count;
  for (size_t i = 0; i < x.values.size(); ++i)
    variance[channel_of(i)] += std::pow(x.values[i] - mean[channel_of(i)], 2) / count;
  Array y = x;
  Array mean_out = old_mean;
  Array variance_out = old_variance;
  Array saved_mean = Zeros(old_mean.shape);
  Array saved_variance = Zeros(old_mean.shape);
  for (size_t c = 0; c < channels && !spec.unchanged; ++c) {
    if (spec.global) {
      mean[c] = old_mean.values[c];
      variance[c] = old_variance.values[c];
    } else {
      const double keep = spec.momentum_tensor < 0 ? spec.momentum : spec.momentum_tensor;
      mean_out.values[c] = keep * old_mean.values[c] + (1 - keep) * mean[c];
      variance_out.values[c] = keep * old_variance.values[c] + (1 - keep) * variance[c];
    }
    saved_mean.values[c] = mean[c];
    saved_variance.values[c] = 1 / std::sqrt(variance[c] + spec.epsilon);
  }
  for (size_t i = 0; i < x.values.size() && !spec.unchanged; ++i) {
    const size_t c = channel_of(i);
    y.values[i] = (x.values[i] - mean[c]) * saved_variance.values[c] * Or(inputs, "Scale", c, 1) +
                  Or(inputs, "Bias", c, 0);
  }
  return {{"Y", {std::move(y)}},
          {"MeanOut", {std::move(mean_out)}},
          {"VarianceOut", {std::move(variance_out)}},
          {"SavedMean", {std::move(saved_mean)}},
          {"SavedVariance", {std::move(saved_variance)}}};
}

// Of batch_norm.
inline OpCase NormCase(const NormSpec& spec) {
  const int64_t channels = spec.x[spec.channels_last ? spec.x.rank() - 1 : 1];
  OpCase op_case;
  op_case.name = spec.name;
  op_case.type = "batch_norm";
  op_case.inputs = {{"X", {Uniform(spec.x, 1, spec.offset - 1, spec.offset + 2)}},
                    {"Mean", {Uniform({channels}, 2)}},
                    {"Variance", {Uniform({channels}, 3, 0.5, 2.0)}}};
  if (spec.scale) op_case.inputs["Scale"] = {Uniform({channels}, 4, 0.5, 1.5)};
  if (spec.bias) op_case.inputs["Bias"] = {Uniform({channels}, 5)};
  op_case.attrs = spec.attrs;
  if (spec.channels_last) op_case.attrs["data_layout"] = std::string("NHWC");
  if (spec.momentum_tensor >= 0)
    op_case.inputs["MomentumTensor"] = {Values({1}, {spec.momentum_tensor})};
  op_case.reference = [spec](const Arrays& inputs) { return NormReference(spec, inputs); };
  op_case.outputs = {
      {"Y", 1}, {"MeanOut", 1}, {"VarianceOut", 1}, {"SavedMean", 1}, {"SavedVariance", 1}};
  op_case.gradients = {"X"};
  if (spec.scale) op_case.gradients.push_back("Scale");
  if (spec.bias) op_case.gradients.push_back("Bias");
  op_case.loss_outputs = {"Y"};
  op_case.float32_tolerance = spec.float32_tolerance;
  op_case.gradient_tolerance = spec.gradient_tolerance;
  op_case.benchmark_only = spec.benchmark_only;
  return op_case;
}

}  // namespace skiff::harness
