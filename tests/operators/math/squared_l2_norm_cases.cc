#include "tests/harness/op_case.h"
#include "tests/harness/selected_rows_cases.h"
#include "tests/operators/scaled_case.h"

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
  for (const auto& [name, factor] :
       std::vector<std::pair<std::string, double>>{{"wide", 1}, {"wide_of_huge_numbers", 1e25}}) {
    for (const int64_t size : {5, 17, 20000}) {
      OpCase wide = SquaredL2NormCase(name + "_" + std::to_string(size), {size}, false);
      wide.inputs["X"][0] = Scaled(wide.inputs["X"][0], factor);
      wide.attrs = {{"wide_float32", true}};
      wide.dtypes = {DType::kFloat32};
      wide.reference = [](const Arrays& inputs) {
        const Array sum = SquaredL2NormReference(inputs).at("Out")[0];
        return Arrays{{"Out", {Values({1}, sum.values, DType::kFloat64)}}};
      };
      cases.push_back(wide);
    }
  }
  OpCase large = SquaredL2NormCase("of_16M", {4096, 4096}, false);
  large.benchmark_only = true;
  cases.push_back(large);
}

}  // namespace skiff::harness
