#include "tests/harness/op_case.h"
#include "tests/harness/selected_rows_cases.h"

namespace skiff::harness {
namespace {

Arrays SquaredL2NormReference(const Arrays& inputs) {
  const Array& x = inputs.at("X")[0];
  const Array dense = x.is_selected_rows() ? Dense(x) : x;
  double sum = 0;
  for (const double value : dense.values) sum += value * value;
  return {{"Out", {Values({1}, {sum})}}};
}

OpCase SquaredL2NormCase(const std::string& name, const Shape& shape, bool with_gradient = true) {
  OpCase result{.name = name,
                .type = "squared_l2_norm",
                .inputs = {{"X", {Uniform(shape, 9)}}},
                .reference = SquaredL2NormReference,
                .outputs = {{"Out", 1}}};
  result.accepted_wrong_inputs = {{"Out@GRAD", "other rank", "a sum of one element has any rank"}};
  if (with_gradient) result.gradients = {"X"};
  return result;
}

}  // namespace

void AddSquaredL2NormCases(CaseList& cases) {
  cases.push_back(SquaredL2NormCase("one_element", {1}));
  cases.push_back(SquaredL2NormCase("matrix", {5, 17}));
  cases.push_back(SquaredL2NormCase("rank_3", {3, 4, 5}));
  cases.push_back(SquaredL2NormCase("no_elements", {0, 3}));
  cases.push_back(SquaredL2NormCase("several_parts", {131, 1009}, false));
  for (const auto& [name, x] : SelectedRowsOfAllKinds()) {
    cases.push_back({.name = name,
                     .type = "squared_l2_norm",
                     .inputs = {{"X", {x}}},
                     .reference = SquaredL2NormReference,
                     .outputs = {{"Out", 1}}});
  }
  OpCase large = SquaredL2NormCase("of_16M", {4096, 4096}, false);
  large.benchmark_only = true;
  cases.push_back(large);
}

}  // namespace skiff::harness
