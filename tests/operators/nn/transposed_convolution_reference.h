// Cases of the transposed convolutions, with a naive float64 reference.
#pragma once

#include <string>
#include <vector>

#include "tests/operators/nn/volume_reference.h"

namespace skiff::harness {

// Of images, sizes of axis 0, the depth, stay 1.
struct TransposeSpec {
  std::string name;
  VolumeSize input;
  int64_t outputs = 1;  // channels
  Triple kernel{1, 1, 1};
  Triple output{1, 1, 1};  // as expected
  // What the op is expected to do.
  Triple stride{1, 1, 1};
  Triple padding{0, 0, 0};  // at the top and on the left
  Triple dilation{1, 1, 1};
  int64_t groups = 1;
  bool channels_last = false;
  bool is_image = true;
  AttributeMap attrs = {};
  std::vector<std::string> gradients = {"Input", "Filter"};
  bool benchmark_only = false;
};

inline VolumeSize OutputOf(const TransposeSpec& spec) {
  return {.batch = spec.input.batch, .channels = spec.outputs, .size = spec.output};
}

// Calls visit(places of an output, an input, a weight) for each term of the sums.
template <typename Visit>
void ForEachTerm(const TransposeSpec& spec, const Visit& visit) {
  const VolumeSize out = OutputOf(spec);
  const int64_t group_inputs = spec.input.channels / spec.groups;
  const int64_t group_outputs = spec.outputs / spec.groups;
  const VolumeSize taps{
      .batch = spec.input.channels, .channels = group_outputs, .size = spec.kernel};
  for (int64_t n = 0; n < out.batch; ++n) {
    for (int64_t c = 0; c < spec.input.channels; ++c) {
      for (int64_t o = 0; o < group_outputs; ++o) {
        ForEachPoint(spec.input.size, [&](const Triple& p) {
          ForEachPoint(spec.kernel, [&](const Triple& t) {
            Triple q;
            for (size_t axis = 0; axis < 3; ++axis) {
              q[axis] =
                  p[axis] * spec.stride[axis] + t[axis] * spec.dilation[axis] - spec.padding[axis];
            }
            if (!out.contains(q)) return;
            const int64_t channel = c / group_inputs * group_outputs + o;
            visit(out.Index(spec.channels_last, n, channel, q),
                  spec.input.Index(spec.channels_last, n, c, p), taps.Index(false, c, o, t));
          });
        });
      }
    }
  }
}

inline Arrays TransposeReference(const TransposeSpec& spec, const Arrays& inputs) {
  const LazyValues& input = inputs.at("Input")[0].values;
  const LazyValues& filter = inputs.at("Filter")[0].values;
  const VolumeSize out = OutputOf(spec);
  std::vector<double> values(static_cast<size_t>(out.count()), 0.0);
  ForEachTerm(spec, [&](size_t at, size_t from, size_t weight) {
    values[at] += filter[weight] * input[from];
  });
  return {{"Output", {Values(out.AsShape(spec.channels_last, spec.is_image), values)}}};
}

inline Arrays TransposeGradientReference(const TransposeSpec& spec, const Arrays& inputs) {
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

inline OpCase TransposeCase(const std::string& type, const TransposeSpec& spec) {
  OpCase op_case;
  op_case.name = spec.name;
  op_case.type = type;
  Shape filter = {spec.input.channels, spec.outputs / spec.groups};
  for (size_t axis = spec.is_image ? 1 : 0; axis < 3; ++axis) filter.Append(spec.kernel[axis]);
  op_case.inputs = {{"Input", {Uniform(spec.input.AsShape(spec.channels_last, spec.is_image), 1)}},
                    {"Filter", {Uniform(filter, 2)}}};
  op_case.attrs = spec.attrs;
  if (spec.channels_last && !op_case.attrs.contains("data_format")) {
    op_case.attrs["data_format"] = std::string(spec.is_image ? "NHWC" : "NDHWC");
  }
  op_case.attrs["groups"] = static_cast<int32_t>(spec.groups);
  op_case.reference = [spec](const Arrays& inputs) { return TransposeReference(spec, inputs); };
  op_case.outputs = {{"Output", 1}};
  op_case.gradients = spec.gradients;
  op_case.benchmark_only = spec.benchmark_only;
  return op_case;
}

// For inputs too large for finite differences.
inline OpCase TransposeGradientCase(const std::string& type, const TransposeSpec& spec) {
  OpCase op_case = TransposeCase(type, spec);
  op_case.name += "_gradient";
  op_case.type = type + "_grad";
  op_case.inputs["Output@GRAD"] = {
      Uniform(OutputOf(spec).AsShape(spec.channels_last, spec.is_image), 3)};
  op_case.reference = [spec](const Arrays& inputs) {
    return TransposeGradientReference(spec, inputs);
  };
  op_case.outputs = {{"Input@GRAD", 1}, {"Filter@GRAD", 1}};
  op_case.gradients = {};
  return op_case;
}

}  // namespace skiff::harness
