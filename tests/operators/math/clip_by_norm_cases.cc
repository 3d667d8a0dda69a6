#include <cmath>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

OpCase Case(const std::string& name, const Shape& shape, float max_norm) {
  OpCase result{.name = name,
                .type = "clip_by_norm",
                .inputs = {{"X", {Uniform(shape, 12)}}},
                .attrs = {{"max_norm", max_norm}},
                .reference = [max_norm](const Arrays& inputs) -> Arrays {
                  Array out = inputs.at("X")[0];
                  double sum = 0;
                  for (const double value : out.values) sum += value * value;
                  const double norm = std::sqrt(sum);
                  if (norm > static_cast<double>(max_norm)) {
                    for (double& value : out.values) value *= static_cast<double>(max_norm) / norm;
                  }
                  return {{"Out", {out}}};
                },
                .outputs = {{"Out", 1}}};
  return result;
}

}  // namespace

void AddClipByNormCases(CaseList& cases) {
  cases.push_back(Case("clipped", {5, 7}, 0.5f));
  cases.push_back(Case("left_alone", {5, 7}, 100.0f));
  cases.push_back(Case("several_parts", {37, 1013}, 1.0f));
  cases.push_back(Case("no_elements", {0, 3}, 1.0f));
}

}  // namespace skiff::harness
