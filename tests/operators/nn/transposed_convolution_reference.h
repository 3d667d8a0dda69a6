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
inline Shape OutputShape(const TransposeSpec& spec) {
  return OutputOf(spec).AsShape(spec.channels_last, spec.is_image);
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

inline OpCase TransposeCase(const std::string& type, const TransposeSpec& spec) {
  Shape filter = {spec.input.channels, spec.outputs / spec.groups};
  for (size_t axis = spec.is_image ? 1 : 0; axis < 3; ++axis) filter.Append(spec.kernel[axis]);
  OpCase op_case =
      SumsCase(type, spec, spec.input.AsShape(spec.channels_last, spec.is_image), filter);
  if (spec.channels_last && !op_case.attrs.contains("data_format")) {
    op_case.attrs["data_format"] = std::string(spec.is_image ? "NHWC" : "NDHWC");
  }
  return op_case;
}

// For inputs too large for finite differences.
inline OpCase TransposeGradientCase(const std::string& type, const TransposeSpec& spec) {
  return GradientOfSumsCase(TransposeCase(type, spec), spec);
}

}  // namespace skiff::harness
