#include <cmath>

#include "tests/harness/op_case.h"
#include "tests/harness/selected_rows_cases.h"
#include "tests/operators/scaled_case.h"

namespace skiff::harness {
namespace {

OpCase ClipByNormCase(const std::string& name, const Array& x, float max_norm) {
  OpCase result{.name = name,
                .type = "clip_by_norm",
                .inputs = {{"X", {x}}},
                .attrs = {{"max_norm", max_norm}},
                .reference = [max_norm](const Arrays& inputs) -> Arrays {
                  Array out = inputs.at("X")[0];
                  const Array dense = out.is_selected_rows() ? Dense(out) : out;
                  double sum = 0;
                  for (const double value : dense.values) sum += value * value;
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
  cases.push_back(ClipByNormCase("clipped", Uniform({5, 7}, 12), 0.5f));
  cases.push_back(ClipByNormCase("left_alone", Uniform({5, 7}, 12), 100.0f));
  cases.push_back(ClipByNormCase("several_parts", Uniform({37, 1013}, 12), 1.0f));
  cases.push_back(ClipByNormCase("no_elements", Uniform({0, 3}, 12), 1.0f));
  for (const int64_t size : {15, 16, 17, 64, 100, 20000}) {
    cases.push_back(
        ClipByNormCase("huge_" + std::to_string(size), Scaled(Uniform({size}, 12), 1e20), 10.0f));
    cases.push_back(ClipByNormCase("beyond_the_squares_" + std::to_string(size),
                                   Scaled(Uniform({size}, 12), 1e36), 10.0f));
  }
  for (const auto& [name, x] : SelectedRowsOfAllKinds()) {
    cases.push_back(ClipByNormCase(name, x, 0.5f));
    cases.push_back(ClipByNormCase(name + "_left_alone", x, 1000.0f));
  }
}

}  // namespace skiff::harness
