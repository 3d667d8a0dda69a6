#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/operators/nn/image_reference.h"

namespace skiff::harness {
namespace {

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
  // Where the table is too narrow.
  double float32_tolerance = 0;
  double gradient_tolerance = 0;
  bool benchmark_only = false;
};

double Or(const Arrays& inputs, const std::string& slot, size_t c, double otherwise) {
  const auto it = inputs.find(slot);
  return it == inputs.end() ? otherwise : it->second[0].values[c];
}

Arrays NormReference(const NormSpec& spec, const Arrays& inputs) {
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

OpCase NormCase(const NormSpec& spec) {
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

}  // namespace

void AddBatchNormCases(CaseList& cases) {
  const std::vector<NormSpec> specs = {
      {.name = "images", .x = {2, 3, 5, 4}},
      {.name = "one_channel", .x = {3, 1, 4, 4}},
      {.name = "whole_blocks", .x = {3, 16, 5, 6}},
      {.name = "part_of_a_block", .x = {2, 17, 5, 5}},
      {.name = "rows_longer_than_a_chunk", .x = {2, 3, 70, 80}},
      {.name = "more_images_than_parts", .x = {70, 3, 4, 4}},
      {.name = "vectors", .x = {7, 5}},
      {.name = "sequences", .x = {3, 4, 20}},
      {.name = "volumes", .x = {2, 3, 3, 4, 5}},
      {.name = "channels_last", .x = {2, 4, 5, 3}, .channels_last = true},
      {.name = "vectors_channels_last", .x = {6, 4}, .channels_last = true},
      {.name = "vectors_of_several_tiles", .x = {300, 150}},
      {.name = "more_vectors_than_a_chunk", .x = {17000, 3}},
      {.name = "one_pixel", .x = {9, 18, 1, 1}},
      {.name = "channels_last_of_several_tiles", .x = {3, 7, 9, 83}, .channels_last = true},
      {.name = "momentum_and_epsilon",
       .x = {2, 3, 4, 5},
       .momentum = 0.75f,
       .epsilon = 1e-3f,
       .attrs = {{"momentum", 0.75f}, {"epsilon", 1e-3f}}},
      {.name = "momentum_tensor", .x = {2, 3, 4, 5}, .momentum_tensor = 0.5},
      {.name = "without_scale_and_bias", .x = {2, 17, 4, 5}, .scale = false, .bias = false},
      {.name = "evaluation", .x = {2, 17, 4, 5}, .global = true, .attrs = {{"is_test", true}}},
      {.name = "global_statistics",
       .x = {2, 17, 4, 5},
       .global = true,
       .attrs = {{"use_global_stats", true}}},
      {.name = "global_statistics_channels_last",
       .x = {2, 4, 5, 3},
       .channels_last = true,
       .global = true,
       .attrs = {{"use_global_stats", true}}},
      {.name = "trainable_statistics",
       .x = {2, 3, 4, 5},
       .attrs = {{"is_test", true}, {"trainable_statistics", true}}},
      {.name = "one_value_a_channel", .x = {1, 17, 1, 1}, .unchanged = true},
      {.name = "empty_batch_of_evaluation",
       .x = {0, 3, 4, 4},
       .global = true,
       .attrs = {{"is_test", true}}},
      // X holds 3e-5 of rounding against a spread of 0.9; central differences are off by 1e-5.
      {.name = "far_from_zero",
       .x = {4, 17, 6, 6},
       .offset = 500,
       .float32_tolerance = 1e-4,
       .gradient_tolerance = 1e-4},
      {.name = "channels_last_far_from_zero",
       .x = {4, 6, 6, 17},
       .channels_last = true,
       .offset = 500,
       .float32_tolerance = 1e-4,
       .gradient_tolerance = 1e-4},
      {.name = "resnet_64_at_56", .x = {8, 64, 56, 56}, .benchmark_only = true},
      {.name = "resnet_512_at_7", .x = {8, 512, 7, 7}, .benchmark_only = true},
      {.name = "perceptron_64x1024", .x = {64, 1024}, .benchmark_only = true},
      {.name = "channels_last_64_at_56",
       .x = {8, 56, 56, 64},
       .channels_last = true,
       .benchmark_only = true},
  };
  for (const NormSpec& spec : specs) cases.push_back(NormCase(spec));
}

}  // namespace skiff::harness
