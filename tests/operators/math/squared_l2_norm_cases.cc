#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

OpCase Case(const std::string& name, const Shape& shape, bool with_gradient = true) {
  OpCase result{.name = name,
                .type = "squared_l2_norm",
                .inputs = {{"X", {Uniform(shape, 9)}}},
                .reference = [](const Arrays& inputs) -> Arrays {
                  double sum = 0;
                  for (const double value : inputs.at("X")[0].values) sum += value * value;
                  return {{"Out", {Values({1}, {sum})}}};
                },
                .outputs = {{"Out", 1}}};
  result.accepted_wrong_inputs = {{"Out@GRAD", "other rank", "a sum of one element has any rank"}};
  if (with_gradient) result.gradients = {"X"};
  return result;
}

}  // namespace

void AddSquaredL2NormCases(CaseList& cases) {
  cases.push_back(Case("one_element", {1}));
  cases.push_back(Case("matrix", {5, 17}));
  cases.push_back(Case("rank_3", {3, 4, 5}));
  cases.push_back(Case("no_elements", {0, 3}));
  cases.push_back(Case("several_parts", {131, 1009}, false));
  OpCase large = Case("of_16M", {4096, 4096}, false);
  large.benchmark_only = true;
  cases.push_back(large);
}

}  // namespace skiff::harness
