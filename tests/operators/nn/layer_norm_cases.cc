#include <cmath>
#include <string>
#include <vector>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

struct LayerNormSpec {
  std::string name;
  Shape x;
  int32_t axis = 1;
  bool scale = true;
  bool bias = true;
  double offset = 0;  // of X
  float epsilon = 1e-5f;
  double float32_tolerance = 0;
  double gradient_tolerance = 0;
  bool gradients = true;
  bool benchmark_only = false;
};

Arrays LayerNormReference(const LayerNormSpec& spec, const Arrays& inputs) {
  Array y = inputs.at("X")[0];
  const auto rows = static_cast<size_t>(spec.x.element_count(0, spec.axis));
  const auto size = static_cast<size_t>(spec.x.element_count(spec.axis, spec.x.rank()));
  const Shape batch(spec.x.dims().first(static_cast<size_t>(spec.axis)));
  std::vector<double> means;
  std::vector<double> variances;
  for (size_t row = 0; row < rows; ++row) {
    double* values = y.values.data() + row * size;
    double mean = 0;
    for (size_t i = 0; i < size; ++i) mean += values[i] / static_cast<double>(size);
    double variance = 0;
    for (size_t i = 0; i < size; ++i) {
      variance += (values[i] - mean) * (values[i] - mean) / static_cast<double>(size);
    }
    for (size_t i = 0; i < size; ++i) {
      values[i] = (values[i] - mean) / std::sqrt(variance + static_cast<double>(spec.epsilon));
      if (spec.scale) values[i] *= inputs.at("Scale")[0].values[i];
      if (spec.bias) values[i] += inputs.at("Bias")[0].values[i];
    }
    means.push_back(mean);
    variances.push_back(variance);
  }
  return {{"Y", {y}}, {"Mean", {Values(batch, means)}}, {"Variance", {Values(batch, variances)}}};
}

OpCase LayerNormCase(const LayerNormSpec& spec) {
  const int64_t size = spec.x.element_count(spec.axis, spec.x.rank());
  OpCase op_case;
  op_case.name = spec.name;
  op_case.type = "layer_norm";
  op_case.inputs = {{"X", {Uniform(spec.x, 1, spec.offset - 1, spec.offset + 2)}}};
  op_case.gradients = {"X"};
  if (spec.scale) {
    op_case.inputs["Scale"] = {Uniform({size}, 2, 0.5, 1.5)};
    op_case.gradients.push_back("Scale");
  }
  if (spec.bias) {
    op_case.inputs["Bias"] = {Uniform({size}, 3)};
    op_case.gradients.push_back("Bias");
  }
  if (!spec.gradients) op_case.gradients.clear();
  op_case.attrs = {{"begin_norm_axis", spec.axis}, {"epsilon", spec.epsilon}};
  op_case.reference = [spec](const Arrays& inputs) { return LayerNormReference(spec, inputs); };
  op_case.outputs = {{"Y", 1}, {"Mean", 1}, {"Variance", 1}};
  op_case.loss_outputs = {"Y"};
  op_case.float32_tolerance = spec.float32_tolerance;
  op_case.gradient_tolerance = spec.gradient_tolerance;
  op_case.benchmark_only = spec.benchmark_only;
  return op_case;
}

}  // namespace

void AddLayerNormCases(CaseList& cases) {
  const std::vector<LayerNormSpec> specs = {
      {.name = "rows_of_16", .x = {3, 16}},
      {.name = "rows_of_37", .x = {5, 37}},
      {.name = "rows_of_1", .x = {3, 1}},
      {.name = "tokens", .x = {2, 3, 40}, .axis = 2},
      {.name = "several_dims_a_row", .x = {3, 4, 5}},
      {.name = "rank_4", .x = {2, 2, 3, 7}, .axis = 3},
      {.name = "without_scale", .x = {4, 21}, .scale = false},
      {.name = "without_bias", .x = {4, 21}, .bias = false},
      {.name = "without_scale_and_bias", .x = {4, 21}, .scale = false, .bias = false},
      {.name = "epsilon", .x = {4, 21}, .epsilon = 1e-3f},
      {.name = "rows_longer_than_a_block", .x = {2, 5003}},
      {.name = "several_parts", .x = {70, 9}},
      {.name = "rows_beyond_a_sum", .x = {2100, 3}},
      {.name = "no_rows", .x = {0, 5}},
      {.name = "empty_rows", .x = {3, 0}},
      // X holds 3e-5 of rounding against a spread of 0.9; central differences are off by 1e-5.
      {.name = "far_from_zero",
       .x = {4, 67},
       .offset = 500,
       .float32_tolerance = 1e-4,
       .gradient_tolerance = 1e-4},
      {.name = "ernie_2048x768", .x = {2048, 768}, .benchmark_only = true},
  };
  for (const LayerNormSpec& spec : specs) cases.push_back(LayerNormCase(spec));
}

}  // namespace skiff::harness
