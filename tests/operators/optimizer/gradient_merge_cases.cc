#include "tests/harness/op_case.h"
#include "tests/harness/selected_rows_cases.h"

namespace skiff::harness {
namespace {

OpCase Merge(const std::string& name, const std::vector<Shape>& shapes, bool resets) {
  OpCase made{.name = name, .type = "gradient_merge"};
  uint64_t seed = 1;
  for (const Shape& shape : shapes) {
    made.inputs["Accumulated"].push_back(Uniform(shape, seed++));
    made.inputs["Grad"].push_back(Uniform(shape, seed++));
  }
  made.inputs["Reset"] = {Values({1}, {resets ? 1.0 : 0.0}, DType::kBool)};
  made.outputs = {{"AccumulatedOut", static_cast<int>(shapes.size())}};
  made.reference = [resets](const Arrays& inputs) {
    Arrays outputs;
    for (size_t i = 0; i < inputs.at("Accumulated").size(); ++i) {
      Array sum = inputs.at("Accumulated")[i];
      const Array& given = inputs.at("Grad")[i];
      const Array grad = given.is_selected_rows() ? Dense(given) : given;
      for (size_t j = 0; j < sum.values.size(); ++j) {
        sum.values[j] = resets ? grad.values[j] : sum.values[j] + grad.values[j];
      }
      outputs["AccumulatedOut"].push_back(std::move(sum));
    }
    return outputs;
  };
  return made;
}

}  // namespace

void AddGradientMergeCases(CaseList& cases) {
  for (const bool resets : {false, true}) {
    const std::string suffix = resets ? "_reset" : "";
    cases.push_back(Merge("one" + suffix, {{5, 7}}, resets));
    cases.push_back(Merge("list" + suffix, {{5, 7}, {0}, Shape(), {131, 257}, {17}}, resets));
    for (const auto& [kind, gradient] : SelectedRowsOfAllKinds()) {
      OpCase sparse = Merge("sparse_" + kind + suffix, {Dense(gradient).shape}, resets);
      sparse.inputs["Grad"] = {gradient};
      cases.push_back(std::move(sparse));
    }
  }
}

}  // namespace skiff::harness
