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
  bool moments = false;  // whether BatchMean and BatchVariance are outputs
  double offset = 0;     // of X
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

// Returns whether the op updates the running statistics: another op does, if the moments are
// outputs. The gradient of global statistics reads them.
inline bool HasRunningOutputs(const NormSpec& spec) { return !spec.moments || spec.global; }

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
  std::vector<double> batch_mean(channels, 0.0);
  std::vector<double> batch_variance(channels, -1.0);
  if (!spec.global && !spec.unchanged) {
    batch_mean = mean;
    batch_variance = variance;
  }
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
  Arrays outputs = {{"Y", {std::move(y)}},
                    {"SavedMean", {std::move(saved_mean)}},
                    {"SavedVariance", {std::move(saved_variance)}}};
  if (HasRunningOutputs(spec)) {
    outputs["MeanOut"] = {std::move(mean_out)};
    outputs["VarianceOut"] = {std::move(variance_out)};
  }
  if (spec.moments) {
    outputs["BatchMean"] = {Values(old_mean.shape, batch_mean, DType::kFloat64)};
    outputs["BatchVariance"] = {Values(old_mean.shape, batch_variance, DType::kFloat64)};
  }
  return outputs;
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
  op_case.outputs = {{"Y", 1}, {"SavedMean", 1}, {"SavedVariance", 1}};
  const auto add_outputs = [&](const char* mean, const char* variance) {
    op_case.outputs.insert(op_case.outputs.end(), {{mean, 1}, {variance, 1}});
  };
  if (HasRunningOutputs(spec)) add_outputs("MeanOut", "VarianceOut");
  if (spec.moments) add_outputs("BatchMean", "BatchVariance");
  op_case.gradients = {"X"};
  if (spec.scale) op_case.gradients.push_back("Scale");
  if (spec.bias) op_case.gradients.push_back("Bias");
  op_case.loss_outputs = {"Y"};
  op_case.float32_tolerance = spec.float32_tolerance;
  op_case.gradient_tolerance = spec.gradient_tolerance;
  op_case.benchmark_only = spec.benchmark_only;
  return op_case;
}

// The gradient with the batch's statistics, dx = Scale / deviation · (g - mean of g - z · mean of
// g · z), where z is the normalized x, and g the gradient of Y or, if there is Y, 0 where Y isn't
// positive.
inline Arrays NormGradReference(const NormSpec& spec, const Arrays& inputs) {
  const auto channels = inputs.at("SavedMean")[0].values.size();
  NormSpec plain = spec;
  plain.scale = plain.bias = false;
  Arrays given = {{"X", inputs.at("X")}};
  for (const char* slot : {"Mean", "Variance"}) {
    given[slot] = {Zeros({static_cast<int64_t>(channels)})};
  }
  const Arrays normal = NormReference(plain, given);
  const std::vector<double>& z = normal.at("Y")[0].values;
  const std::vector<double>& inverse = normal.at("SavedVariance")[0].values;
  const size_t pixels =
      spec.channels_last ? 1 : z.size() / channels / static_cast<size_t>(spec.x[0]);
  const auto channel_of = [&](size_t i) { return i / pixels % channels; };
  const auto count = static_cast<double>(z.size() / channels);
  Array dx = inputs.at("Y@GRAD")[0];
  Array dscale = Zeros({static_cast<int64_t>(channels)});
  Array dbias = dscale;
  const auto y = inputs.find("Y");
  for (size_t i = 0; i < z.size(); ++i) {
    double& g = dx.values[i];
    if (y != inputs.end() && y->second[0].values[i] <= 0) g = 0;
    dbias.values[channel_of(i)] += g;
    dscale.values[channel_of(i)] += g * z[i];
  }
  const Array masked = dx;
  for (size_t i = 0; i < z.size(); ++i) {
    const size_t c = channel_of(i);
    dx.values[i] -= (dbias.values[c] + z[i] * dscale.values[c]) / count;
    dx.values[i] *= inverse[c] * Or(inputs, "Scale", c, 1);
  }
  Arrays gradients = {{"X@GRAD", {dx}}, {"Scale@GRAD", {dscale}}, {"Bias@GRAD", {dbias}}};
  if (y != inputs.end()) gradients["Z@GRAD"] = {masked};
  return gradients;
}

// Of batch_norm_grad, or of batch_norm_act_grad with Y, without epsilon. X and Y@GRAD have a
// factor, so that X@GRAD is near 1.
inline OpCase NormGradCase(NormSpec spec, const std::string& what, double factor, bool has_y) {
  spec.epsilon = 0;
  const int64_t channels = spec.x[spec.channels_last ? spec.x.rank() - 1 : 1];
  Array x = Uniform(spec.x, 1, -1, 2);
  for (double& value : x.values) value *= factor;
  Array of_y = Uniform(spec.x, 4);
  for (double& value : of_y.values) value *= factor;
  Arrays inputs = {{"X", {x}},
                   {"Scale", {Uniform({channels}, 2, 0.5, 1.5)}},
                   {"Bias", {Uniform({channels}, 3)}},
                   {"Mean", {Zeros({channels})}},
                   {"Variance", {Zeros({channels})}}};
  Arrays outputs = NormReference(spec, inputs);
  inputs["SavedMean"] = outputs.at("SavedMean");
  inputs["SavedVariance"] = outputs.at("SavedVariance");
  inputs["Y@GRAD"] = {of_y};
  if (has_y) inputs["Y"] = outputs.at("Y");
  OpCase op_case = {
      .name = spec.name + "_" + what,
      .type = has_y ? "batch_norm_act_grad" : "batch_norm_grad",
      .inputs = std::move(inputs),
      .attrs = {{"epsilon", 0.0f}},
      .reference = [spec](const Arrays& given) { return NormGradReference(spec, given); },
      .outputs = {{"X@GRAD", 1}, {"Scale@GRAD", 1}, {"Bias@GRAD", 1}}};
  if (has_y) op_case.outputs.emplace_back("Z@GRAD", 1);
  if (spec.channels_last) op_case.attrs["data_layout"] = std::string("NHWC");
  return op_case;
}

}  // namespace skiff::harness
