// Common parts of the cases of normalizations.
#pragma once

#include <cstdint>
#include <string>

#include "tests/harness/op_case.h"

namespace skiff::harness {

// The case without reference and outputs, with `size` scales and biases if the spec has them.
template <typename Spec>
OpCase NormalizationCase(const std::string& type, const Spec& spec, int64_t size) {
  OpCase op_case;
  op_case.name = spec.name;
  op_case.type = type;
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
  op_case.attrs = {{"epsilon", spec.epsilon}};
  op_case.loss_outputs = {"Y"};
  op_case.float32_tolerance = spec.float32_tolerance;
  op_case.gradient_tolerance = spec.gradient_tolerance;
  op_case.benchmark_only = spec.benchmark_only;
  return op_case;
}

}  // namespace skiff::harness
