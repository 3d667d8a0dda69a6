#include <cmath>
#include <string>
#include <vector>

#include "tests/operators/nn/normalization_case.h"
#include "tests/operators/scaled_case.h"

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
  OpCase op_case =
      NormalizationCase("layer_norm", spec, spec.x.element_count(spec.axis, spec.x.rank()));
  op_case.attrs["begin_norm_axis"] = spec.axis;
  op_case.reference = [spec](const Arrays& inputs) { return LayerNormReference(spec, inputs); };
  op_case.outputs = {{"Y", 1}, {"Mean", 1}, {"Variance", 1}};
  return op_case;
}

// Of rows of X. Its gradient is that of layer_norm by the definition, whatever Mean and Variance.
Arrays LayerNormGradReference(const Arrays& inputs) {
  Array dx = inputs.at("X")[0];
  const auto size = static_cast<size_t>(dx.shape[1]);
  Array dscale = Values({dx.shape[1]}, std::vector<double>(size, 0));
  for (size_t row = 0; row < dx.values.size() / size; ++row) {
    const double* x = inputs.at("X")[0].values.data() + row * size;
    const double* dy = inputs.at("Y@GRAD")[0].values.data() + row * size;
    const double* scale = inputs.at("Scale")[0].values.data();
    const auto mean_of = [size](const auto& value) {
      double sum = 0;
      for (size_t i = 0; i < size; ++i) sum += value(i);
      return sum / static_cast<double>(size);
    };
    const double mean = mean_of([&](size_t i) { return x[i]; });
    const double h = 1 / std::sqrt(mean_of([&](size_t i) { return std::pow(x[i] - mean, 2); }));
    const auto z = [&](size_t i) { return (x[i] - mean) * h; };
    const auto g = [&](size_t i) { return dy[i] * scale[i]; };
    const double offset = mean_of(g);
    const double slope = mean_of([&](size_t i) { return g(i) * z(i); });
    for (size_t i = 0; i < size; ++i) {
      dx.values[row * size + i] = h * (g(i) - offset - z(i) * slope);
      dscale.values[i] += dy[i] * z(i);
    }
  }
  return {{"X@GRAD", {dx}}, {"Scale@GRAD", {dscale}}};
}

// With an epsilon of 0, so that tiny rows count. Y@GRAD is such that X@GRAD is near 1.
OpCase LayerNormGradCase(const std::string& name, int64_t size, double factor) {
  const Array x = Scaled(Uniform({3, size}, 1, -1, 2), factor);
  const Arrays saved = LayerNormReference(
      {.name = "", .x = x.shape, .epsilon = 0},
      {{"X", {x}}, {"Scale", {Uniform({size}, 2)}}, {"Bias", {Uniform({size}, 2)}}});
  return {.name = name,
          .type = "layer_norm_grad",
          .inputs = {{"X", {x}},
                     {"Scale", {Uniform({size}, 2, 0.5, 1.5)}},
                     {"Mean", saved.at("Mean")},
                     {"Variance", saved.at("Variance")},
                     {"Y@GRAD", {Scaled(Uniform({3, size}, 4), factor)}}},
          .attrs = {{"begin_norm_axis", 1}, {"epsilon", 0.0f}},
          .reference = LayerNormGradReference,
          .outputs = {{"X@GRAD", 1}, {"Scale@GRAD", 1}}};
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
  for (const int64_t size : {15, 16, 17, 64, 100, 1300, 5003}) {
    const std::string name = "rows_of_" + std::to_string(size);
    const LayerNormSpec spec = {.name = "extreme_" + name, .x = {3, size}, .epsilon = 0};
    cases.push_back(WithScaledX(LayerNormCase(spec), "huge", 1e20, {"Variance"}));
    cases.push_back(WithScaledX(LayerNormCase(spec), "near_the_end", 1e37, {"Variance"}));
    cases.push_back(WithScaledX(LayerNormCase(spec), "tiny", 1e-22));
    cases.push_back(LayerNormGradCase("gradient_of_huge_" + name, size, 1e20));
    cases.push_back(LayerNormGradCase("gradient_of_tiny_" + name, size, 1e-22));
  }
}

}  // namespace skiff::harness
