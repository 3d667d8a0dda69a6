// Batches of volumes, and their convolutions, for the float64 references. Images are volumes of
// depth 1.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/harness/op_case.h"

namespace skiff::harness {

// Depth, height, width.
using Triple = std::array<int64_t, 3>;

struct VolumeSize {
  int64_t batch = 1;
  int64_t channels = 1;
  Triple size{1, 1, 1};

  // Of rank 5, or of rank 4 for images.
  Shape AsShape(bool channels_last, bool is_image = false) const {
    Shape shape = {batch};
    if (!channels_last) shape.Append(channels);
    for (size_t axis = is_image ? 1 : 0; axis < 3; ++axis) shape.Append(size[axis]);
    if (channels_last) shape.Append(channels);
    return shape;
  }
  int64_t count() const { return batch * channels * size[0] * size[1] * size[2]; }
  bool contains(const Triple& at) const {
    for (size_t axis = 0; axis < 3; ++axis) {
      if (at[axis] < 0 || at[axis] >= size[axis]) return false;
    }
    return true;
  }
  size_t Index(bool channels_last, int64_t n, int64_t c, const Triple& at) const {
    const int64_t point = (at[0] * size[1] + at[1]) * size[2] + at[2];
    const int64_t points = size[0] * size[1] * size[2];
    return static_cast<size_t>(channels_last ? (n * points + point) * channels + c
                                             : (n * channels + c) * points + point);
  }
};

// Calls visit(z, y, x) for every point of an extent, row by row.
template <typename Visit>
void ForEachPoint(const Triple& size, const Visit& visit) {
  for (int64_t z = 0; z < size[0]; ++z) {
    for (int64_t y = 0; y < size[1]; ++y) {
      for (int64_t x = 0; x < size[2]; ++x) visit(Triple{z, y, x});
    }
  }
}

// ---- convolutions whose terms ForEachTerm(spec, visit) visits and whose output has the shape
// OutputShape(spec)

template <typename Spec>
Arrays SumsOfTerms(const Spec& spec, const Arrays& inputs) {
  const LazyValues& input = inputs.at("Input")[0].values;
  const LazyValues& filter = inputs.at("Filter")[0].values;
  const Shape shape = OutputShape(spec);
  std::vector<double> values(static_cast<size_t>(shape.element_count()), 0.0);
  ForEachTerm(spec, [&](size_t at, size_t from, size_t weight) {
    values[at] += filter[weight] * input[from];
  });
  return {{"Output", {Values(shape, values)}}};
}

template <typename Spec>
Arrays GradientsOfTerms(const Spec& spec, const Arrays& inputs) {
  const LazyValues& input = inputs.at("Input")[0].values;
  const LazyValues& filter = inputs.at("Filter")[0].values;
  const LazyValues& gradient = inputs.at("Output@GRAD")[0].values;
  std::vector<double> of_input(input.size(), 0.0);
  std::vector<double> of_filter(filter.size(), 0.0);
  ForEachTerm(spec, [&](size_t at, size_t from, size_t weight) {
    of_input[from] += filter[weight] * gradient[at];
    of_filter[weight] += input[from] * gradient[at];
  });
  return {{"Input@GRAD", {Values(inputs.at("Input")[0].shape, of_input)}},
          {"Filter@GRAD", {Values(inputs.at("Filter")[0].shape, of_filter)}}};
}

template <typename Spec>
OpCase SumsCase(const std::string& type, const Spec& spec, const Shape& input,
                const Shape& filter) {
  OpCase op_case;
  op_case.name = spec.name;
  op_case.type = type;
  op_case.inputs = {{"Input", {Uniform(input, 1)}}, {"Filter", {Uniform(filter, 2)}}};
  op_case.attrs = spec.attrs;
  op_case.attrs["groups"] = static_cast<int32_t>(spec.groups);
  op_case.reference = [spec](const Arrays& inputs) { return SumsOfTerms(spec, inputs); };
  op_case.outputs = {{"Output", 1}};
  op_case.gradients = spec.gradients;
  op_case.benchmark_only = spec.benchmark_only;
  return op_case;
}

// The case of the gradient op, for inputs too large for finite differences.
template <typename Spec>
OpCase GradientOfSumsCase(OpCase op_case, const Spec& spec) {
  op_case.name += "_gradient";
  op_case.type += "_grad";
  op_case.inputs["Output@GRAD"] = {Uniform(OutputShape(spec), 3)};
  op_case.reference = [spec](const Arrays& inputs) { return GradientsOfTerms(spec, inputs); };
  op_case.outputs = {{"Input@GRAD", 1}, {"Filter@GRAD", 1}};
  op_case.gradients = {};
  return op_case;
}

}  // namespace skiff::harness
