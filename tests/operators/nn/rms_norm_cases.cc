#include <cmath>
#include <string>
#include <vector>

#include "tests/operators/nn/normalization_case.h"
#include "tests/operators/scaled_case.h"

namespace skiff::harness {
namespace {

struct RmsNormSpec {
  std::string name;
  Shape x;
  int32_t axis = 1;
  bool scale = true;
  static constexpr bool bias = false;
  double offset = 0;  // of X
  float epsilon = 1e-5f;
  double float32_tolerance = 0;
  double gradient_tolerance = 0;
  bool benchmark_only = false;
};

double RmsMeanSquareOf(const double* row, size_t size) {
  double mean = 0;
  for (size_t i = 0; i < size; ++i) mean += row[i] * row[i] / static_cast<double>(size);
  return mean;
}

Arrays RmsNormReference(const RmsNormSpec& spec, const Arrays& inputs) {
  Array y = inputs.at("X")[0];
  const auto rows = static_cast<size_t>(spec.x.element_count(0, spec.axis));
  const auto size = static_cast<size_t>(spec.x.element_count(spec.axis, spec.x.rank()));
  const Shape batch(spec.x.dims().first(static_cast<size_t>(spec.axis)));
  std::vector<double> squares;
  for (size_t row = 0; row < rows; ++row) {
    double* values = y.values.data() + row * size;
    squares.push_back(RmsMeanSquareOf(values, size));
    for (size_t i = 0; i < size; ++i) {
      values[i] /= std::sqrt(squares.back() + static_cast<double>(spec.epsilon));
      if (spec.scale) values[i] *= inputs.at("Scale")[0].values[i];
    }
  }
  return {{"Y", {y}}, {"MeanSquare", {Values(batch, squares)}}};
}

OpCase RmsNormCase(const RmsNormSpec& spec) {
  OpCase op_case =
      NormalizationCase("rms_norm", spec, spec.x.element_count(spec.axis, spec.x.rank()));
  op_case.attrs["begin_norm_axis"] = spec.axis;
  op_case.reference = [spec](const Arrays& inputs) { return RmsNormReference(spec, inputs); };
  op_case.outputs = {{"Y", 1}, {"MeanSquare", 1}};
  return op_case;
}

// Of rows of X. Its gradient is that of rms_norm by the definition, whatever MeanSquare.
Arrays RmsNormGradReference(const Arrays& inputs) {
  Array dx = inputs.at("X")[0];
  const auto size = static_cast<size_t>(dx.shape[1]);
  Array dscale = Values({dx.shape[1]}, std::vector<double>(size, 0));
  for (size_t row = 0; row < dx.values.size() / size; ++row) {
    const double* x = inputs.at("X")[0].values.data() + row * size;
    const double* dy = inputs.at("Y@GRAD")[0].values.data() + row * size;
    const double* scale = inputs.at("Scale")[0].values.data();
    const double h = 1 / std::sqrt(RmsMeanSquareOf(x, size));
    double slope = 0;
    for (size_t i = 0; i < size; ++i)
      slope += dy[i] * scale[i] * (x[i] * h) / static_cast<double>(size);
    for (size_t i = 0; i < size; ++i) {
      dx.values[row * size + i] = h * (dy[i] * scale[i] - x[i] * h * slope);
      dscale.values[i] += dy[i] * (x[i] * h);
    }
  }
  return {{"X@GRAD", {dx}}, {"Scale@GRAD", {dscale}}};
}

// With an epsilon of 0, so that tiny rows count. Y@GRAD is such that X@GRAD is near 1.
OpCase RmsNormGradCase(const std::string& name, int64_t size, double factor) {
  const Array x = Scaled(Uniform({3, size}, 1, -1, 2), factor);
  const Array scale = Uniform({size}, 2, 0.5, 1.5);
  const Arrays saved =
      RmsNormReference({.name = "", .x = x.shape, .epsilon = 0}, {{"X", {x}}, {"Scale", {scale}}});
  return {.name = name,
          .type = "rms_norm_grad",
          .inputs = {{"X", {x}},
                     {"Scale", {scale}},
                     {"MeanSquare", saved.at("MeanSquare")},
                     {"Y@GRAD", {Scaled(Uniform({3, size}, 4), factor)}}},
          .attrs = {{"begin_norm_axis", 1}, {"epsilon", 0.0f}},
          .reference = RmsNormGradReference,
          .outputs = {{"X@GRAD", 1}, {"Scale@GRAD", 1}}};
}

// Rows with infinite elements at some places: their mean square is infinite, and finite elements
// become 0.
Array WithInfinities(int64_t size) {
  Array x = Uniform({4, size}, 1, -1, 2);
  const auto set = [&](int64_t row, int64_t column, double value) {
    x.values[static_cast<size_t>(row * size + column)] = value;
  };
  set(0, 0, INFINITY);
  set(1, size - 1, -INFINITY);
  set(2, size / 2, INFINITY);
  set(2, 0, -INFINITY);
  return x;
}

}  // namespace

void AddRmsNormCases(CaseList& cases) {
  const std::vector<RmsNormSpec> specs = {
      {.name = "rows_of_16", .x = {3, 16}},
      {.name = "rows_of_37", .x = {5, 37}},
      // What is left of the gradient is the part of epsilon.
      {.name = "rows_of_1", .x = {3, 1}, .epsilon = 0.5f},
      {.name = "tokens", .x = {2, 3, 40}, .axis = 2},
      {.name = "several_dims_a_row", .x = {3, 4, 5}},
      {.name = "rank_4", .x = {2, 2, 3, 7}, .axis = 3},
      {.name = "without_scale", .x = {4, 21}, .scale = false},
      {.name = "epsilon", .x = {4, 21}, .epsilon = 0.1f},
      {.name = "rows_longer_than_a_block", .x = {2, 5003}},
      {.name = "several_parts", .x = {70, 9}},
      {.name = "rows_beyond_a_sum", .x = {2100, 3}},
      {.name = "no_rows", .x = {0, 5}},
      {.name = "empty_rows", .x = {3, 0}},
      {.name = "far_from_zero", .x = {4, 67}, .offset = 500},
      {.name = "llama_2048x2048", .x = {2048, 2048}, .benchmark_only = true},
  };
  for (const RmsNormSpec& spec : specs) cases.push_back(RmsNormCase(spec));
  for (const int64_t size : {15, 16, 17, 64, 100, 1300, 5003}) {
    const std::string name = "rows_of_" + std::to_string(size);
    const RmsNormSpec spec = {.name = "extreme_" + name, .x = {3, size}, .epsilon = 0};
    cases.push_back(WithScaledX(RmsNormCase(spec), "huge", 1e20, {"MeanSquare"}));
    cases.push_back(WithScaledX(RmsNormCase(spec), "near_the_end", 1e37, {"MeanSquare"}));
    cases.push_back(WithScaledX(RmsNormCase(spec), "tiny", 1e-22));
    cases.push_back(RmsNormGradCase("gradient_of_huge_" + name, size, 1e20));
    cases.push_back(RmsNormGradCase("gradient_of_tiny_" + name, size, 1e-22));
  }
  for (const int64_t size : {2, 37, 5003}) {
    const std::string name = "infinities_in_rows_of_" + std::to_string(size);
    cases.push_back(RmsNormCase({.name = name, .x = {4, size}}));
    cases.back().inputs["X"] = {WithInfinities(size)};
    cases.back().gradients.clear();
  }
}

}  // namespace skiff::harness
