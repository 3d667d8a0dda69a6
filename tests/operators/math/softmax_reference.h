// Cases of the softmax and its logarithm, with a naive float64 reference.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/operators/math/axis_lines.h"

namespace skiff::harness {

// Out = formula(x - m, the sum of exp(x - m)) for each x of a line along the axis, whose highest
// element is m.
template <typename Formula>
Arrays SoftmaxReference(const Arrays& inputs, int64_t axis, const Formula& formula) {
  Array out = inputs.at("X")[0];
  const AxisLines lines(out.shape, axis);
  for (int64_t line = 0; line < lines.count(); ++line) {
    const std::vector<double> values = lines.Line(out, line);
    double max = -INFINITY;
    for (const double value : values) max = std::max(max, value);
    double sum = 0;
    for (const double value : values) sum += std::exp(value - max);
    for (int64_t c = 0; c < lines.length; ++c) {
      double& value = out.values[lines.Place(line, c, lines.length)];
      value = formula(value - max, sum);
    }
  }
  return {{"Out", {out}}};
}

// A case of X in [-range, range].
template <typename Formula>
OpCase SoftmaxCaseOf(const std::string& type, const Formula& formula, const std::string& name,
                     const Shape& shape, int32_t axis, double range) {
  OpCase result{
      .name = name,
      .type = type,
      .inputs = {{"X", {Uniform(shape, 13, -range, range)}}},
      .attrs = {{"axis", axis}},
      .reference =
          [axis, formula](const Arrays& inputs) { return SoftmaxReference(inputs, axis, formula); },
      .outputs = {{"Out", 1}}};
  if (shape.element_count() < 1000) result.gradients = {"X"};
  return result;
}

}  // namespace skiff::harness
