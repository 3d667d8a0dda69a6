// Cases of the ops that resize images, with a naive float64 reference.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/operators/nn/image_reference.h"

namespace skiff::harness {

struct InterpolationSpec {
  std::string name;
  Shape input;  // N, C, H, W, whatever the format
  Pair output;  // as expected
  // The expected distance in the input between neighbouring pixels of the output.
  double rows = 1;
  double columns = 1;
  bool align_corners = true;
  int32_t align_mode = 1;
  bool channels_last = false;
  AttributeMap attrs = {};
  bool benchmark_only = false;
};

// Weights by pixel of the input, for pixel `place` of an axis of the output.
using Weights = std::function<std::vector<double>(const InterpolationSpec& spec, double ratio,
                                                  int64_t place, int64_t inputs)>;

inline std::vector<double> NearestWeights(const InterpolationSpec& spec, double ratio,
                                          int64_t place, int64_t inputs) {
  // Fluid adds 0.5 in float64 to a float32 position. Half way between two pixels, rounding errors
  // decide between the two.
  const float position = static_cast<float>(ratio) * static_cast<float>(place);
  const double rounded = std::floor(static_cast<double>(position) + (spec.align_corners ? 0.5 : 0));
  std::vector<double> weights(static_cast<size_t>(inputs), 0.0);
  weights[std::min(static_cast<size_t>(rounded), weights.size() - 1)] = 1;
  return weights;
}

// The weight of a pixel is 1 less its distance, or 0 from a distance of 1 on.
inline std::vector<double> BilinearWeights(const InterpolationSpec& spec, double ratio,
                                           int64_t place, int64_t inputs) {
  double position = ratio * static_cast<double>(place);
  const bool by_centers = !spec.align_corners && spec.align_mode == 0;
  if (by_centers) position = ratio * (static_cast<double>(place) + 0.5) - 0.5;
  position = std::clamp(position, 0.0, static_cast<double>(inputs - 1));
  std::vector<double> weights;
  for (int64_t i = 0; i < inputs; ++i) {
    weights.push_back(std::max(0.0, 1 - std::abs(position - static_cast<double>(i))));
  }
  return weights;
}

inline Arrays InterpolationReference(const InterpolationSpec& spec, const Weights& weights,
                                     const Arrays& inputs) {
  Array x = inputs.at("X")[0];
  Array y = Zeros(ImageShape({spec.input[0], spec.input[1], spec.output.height, spec.output.width},
                             spec.channels_last));
  const ImageView in(&x, spec.channels_last);
  const ImageView out(&y, spec.channels_last);
  for (int64_t row = 0; row < out.height(); ++row) {
    const std::vector<double> of_rows = weights(spec, spec.rows, row, in.height());
    for (int64_t column = 0; column < out.width(); ++column) {
      const std::vector<double> of_columns = weights(spec, spec.columns, column, in.width());
      for (int64_t n = 0; n < out.batch(); ++n) {
        for (int64_t c = 0; c < out.channels(); ++c) {
          double& sum = out.at(n, c, row, column);
          for (int64_t i = 0; i < in.height(); ++i) {
            for (int64_t j = 0; j < in.width(); ++j) {
              sum += of_rows[static_cast<size_t>(i)] * of_columns[static_cast<size_t>(j)] *
                     in.at(n, c, i, j);
            }
          }
        }
      }
    }
  }
  return {{"Out", {std::move(y)}}};
}

// `version` is what follows the method in the op's type.
inline OpCase InterpolationCase(const std::string& method, const std::string& version,
                                const InterpolationSpec& spec) {
  const Weights weights = method == "nearest" ? NearestWeights : BilinearWeights;
  OpCase op_case;
  op_case.name = spec.name;
  op_case.type = method + version;
  op_case.inputs = {{"X", {Uniform(ImageShape(spec.input, spec.channels_last), 1)}}};
  op_case.attrs = spec.attrs;
  op_case.attrs["interp_method"] = method;
  if (!op_case.attrs.count("scale")) {
    op_case.attrs["out_h"] = static_cast<int32_t>(spec.output.height);
    op_case.attrs["out_w"] = static_cast<int32_t>(spec.output.width);
  }
  op_case.attrs["align_corners"] = spec.align_corners;
  op_case.attrs["align_mode"] = spec.align_mode;
  if (spec.channels_last) op_case.attrs["data_layout"] = std::string("NHWC");
  op_case.reference = [spec, weights](const Arrays& inputs) {
    return InterpolationReference(spec, weights, inputs);
  };
  op_case.outputs = {{"Out", 1}};
  op_case.gradients = {"X"};
  op_case.benchmark_only = spec.benchmark_only;
  return op_case;
}

// Of both versions: out_h and out_w give the size.
inline std::vector<InterpolationSpec> SpecsBySize() {
  return {
      {"corners", {2, 3, 4, 5}, {7, 9}, 3.0 / 6, 4.0 / 8},
      {"corners_smaller", {2, 3, 7, 9}, {4, 3}, 6.0 / 3, 8.0 / 2},
      {"corners_odd", {1, 2, 4, 5}, {6, 8}, 3.0 / 5, 4.0 / 7},
      {"mode_1", {2, 3, 4, 5}, {8, 8}, 4.0 / 8, 5.0 / 8, false, 1},
      {"mode_1_smaller", {1, 2, 8, 9}, {4, 3}, 8.0 / 4, 9.0 / 3, false, 1},
      {"mode_0", {2, 3, 4, 5}, {8, 8}, 4.0 / 8, 5.0 / 8, false, 0},
      {"mode_0_smaller", {1, 2, 8, 9}, {4, 3}, 8.0 / 4, 9.0 / 3, false, 0},
      {"same_size", {1, 2, 4, 5}, {4, 5}, 1, 1, false, 0},
      {"half_way_between_two", {1, 1, 1, 2}, {1, 83}, 0, 1.0 / 82},
      {"one_pixel", {1, 2, 4, 5}, {1, 1}, 0, 0},
      {"one_row", {1, 2, 4, 5}, {1, 10}, 0, 5.0 / 10, false, 1},
      {"of_one_pixel", {1, 2, 1, 1}, {3, 4}, 1.0 / 3, 1.0 / 4, false, 0},
      {"channels_last", {2, 3, 4, 5}, {7, 9}, 3.0 / 6, 4.0 / 8, true, 1, true},
      {"channels_last_mode_0", {2, 5, 4, 5}, {8, 8}, 4.0 / 8, 5.0 / 8, false, 0, true},
      {"no_images", {0, 3, 4, 5}, {8, 8}, 4.0 / 8, 5.0 / 8, false, 0},
      {"decoder_8x64x56x56", {8, 64, 56, 56}, {112, 112}, 0.5, 0.5, false, 0, false, {}, true},
  };
}

// Of version 2.
inline std::vector<InterpolationSpec> SpecsByScale() {
  const std::vector<float> both = {2.0f};
  const std::vector<float> each = {2.0f, 1.5f};
  const std::vector<float> little = {1.1f};
  const double of_little = 1 / static_cast<double>(1.1f);
  return {
      {"scale_to_same_size", {1, 2, 4, 5}, {4, 5}, 1, 1, false, 0, false, {{"scale", little}}},
      {"scale_to_same_height",
       {1, 2, 4, 10},
       {4, 11},
       of_little,
       of_little,
       false,
       1,
       false,
       {{"scale", little}}},
      {"scale", {1, 2, 4, 5}, {8, 10}, 1 / 2.0, 1 / 2.0, false, 0, false, {{"scale", both}}},
      {"scale_each", {1, 2, 4, 5}, {8, 7}, 1 / 2.0, 1 / 1.5, false, 1, false, {{"scale", each}}},
      {"scale_with_corners",
       {1, 2, 4, 5},
       {8, 7},
       3.0 / 7,
       4.0 / 6,
       true,
       1,
       false,
       {{"scale", each}, {"out_h", int32_t{3}}, {"out_w", int32_t{3}}}},
      // What OutSize and SizeTensor give goes before the scale.
      {"size",
       {1, 2, 4, 5},
       {7, 9},
       3.0 / 6,
       4.0 / 8,
       true,
       1,
       false,
       {{"out_size", std::vector<int32_t>{7, 9}}, {"scale", both}}},
  };
}

// Of version 1, where the sizes alone give the distances.
inline std::vector<InterpolationSpec> SpecsByOneScale() {
  return {
      {"scale", {1, 2, 4, 5}, {6, 7}, 4.0 / 6, 5.0 / 7, false, 0, false, {{"scale", 1.5f}}},
      {"scale_mode_1", {1, 2, 5, 3}, {9, 5}, 5.0 / 9, 3.0 / 5, false, 1, false, {{"scale", 1.9f}}},
      {"scale_to_same_size", {1, 2, 4, 5}, {4, 5}, 1, 1, false, 0, false, {{"scale", 1.1f}}},
      {"scale_with_corners",
       {1, 2, 4, 5},
       {6, 7},
       3.0 / 5,
       4.0 / 6,
       true,
       1,
       false,
       {{"scale", 1.5f}, {"out_h", int32_t{3}}, {"out_w", int32_t{3}}}},
  };
}

inline void AddInterpolationCases(const std::string& method, const std::string& version,
                                  const std::vector<InterpolationSpec>& of_scale, CaseList* cases) {
  for (const auto& specs : {SpecsBySize(), of_scale}) {
    for (const InterpolationSpec& spec : specs) {
      cases->push_back(InterpolationCase(method, version, spec));
    }
  }
}

}  // namespace skiff::harness
