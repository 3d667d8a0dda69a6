#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

OpCase MeanCase(const std::string& name, const Shape& shape, bool with_gradient = true) {
  OpCase result{.name = name,
                .type = "mean",
                .inputs = {{"X", {Uniform(shape, 5)}}},
                .reference = [](const Arrays& inputs) -> Arrays {
                  const Array& x = inputs.at("X")[0];
                  double sum = 0;
                  for (const double value : x.values) sum += value;
                  return {{"Out", {Values({}, {sum / static_cast<double>(x.values.size())})}}};
                },
                .outputs = {{"Out", 1}}};
  result.accepted_wrong_inputs = {{"Out@GRAD", "other rank", "a sum of one element has any rank"}};
  if (with_gradient) result.gradients = {"X"};
  return result;
}

}  // namespace

void AddMeanCases(CaseList& cases) {
  cases.push_back(MeanCase("one_element", {1}));
  cases.push_back(MeanCase("matrix", {5, 7}));
  cases.push_back(MeanCase("rank_4", {2, 3, 4, 5}));
  cases.push_back(MeanCase("several_parts", {77, 1013}, false));
}

}  // namespace skiff::harness
