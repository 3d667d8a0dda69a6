#include <cmath>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

Arrays AddmmReference(const Arrays& inputs, float alpha, float beta) {
  const Array& input = inputs.at("Input")[0];
  const Array& x = inputs.at("X")[0];
  const Array& y = inputs.at("Y")[0];
  const int64_t m = x.shape[0];
  const int64_t k = x.shape[1];
  const int64_t n = y.shape[1];
  const int64_t rows = input.shape.rank() == 1 ? 1 : input.shape[0];
  const int64_t columns = input.shape.dim(-1);
  std::vector<double> out;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p) {
        sum += x.values[static_cast<size_t>(i * k + p)] * y.values[static_cast<size_t>(p * n + j)];
      }
      sum *= static_cast<double>(alpha);
      const int64_t at = (rows == 1 ? 0 : i * columns) + (columns == 1 ? 0 : j);
      if (beta != 0) sum += static_cast<double>(beta) * input.values[static_cast<size_t>(at)];
      out.push_back(sum);
    }
  }
  return {{"Out", {Values({m, n}, out)}}};
}

OpCase AddmmCase(const std::string& name, const Shape& input, float alpha = 1, float beta = 1,
                 const Shape& x = {4, 5}, const Shape& y = {5, 3}) {
  return {
      .name = name,
      .type = "addmm",
      .inputs = {{"Input", {Uniform(input, 2)}}, {"X", {Uniform(x, 3)}}, {"Y", {Uniform(y, 4)}}},
      .attrs = {{"Alpha", alpha}, {"Beta", beta}},
      .reference = [=](const Arrays& inputs) { return AddmmReference(inputs, alpha, beta); },
      .outputs = {{"Out", 1}},
      .gradients = {"Input", "X", "Y"}};
}

}  // namespace

void AddAddmmCases(CaseList& cases) {
  cases.push_back(AddmmCase("whole", {4, 3}));
  cases.push_back(AddmmCase("factors", {4, 3}, 0.5f, -2.0f));
  cases.push_back(AddmmCase("one_row", {1, 3}, 0.5f, 3.0f));
  cases.push_back(AddmmCase("one_column", {4, 1}, 0.5f, 3.0f));
  cases.push_back(AddmmCase("one_element", {1, 1}, 2.0f, 0.5f));
  cases.push_back(AddmmCase("vector", {3}, 2.0f, 0.5f));
  cases.push_back(AddmmCase("vector_of_one", {1}));
  cases.push_back(AddmmCase("product_of_one_row", {1, 3}, 1, 1, {1, 5}, {5, 3}));
  cases.push_back(AddmmCase("nothing_to_sum", {4, 3}, 1, 2, {4, 0}, {0, 3}));
  cases.push_back(AddmmCase("no_rows", {1, 3}, 1, 2, {0, 5}, {5, 3}));
  OpCase unread = AddmmCase("beta_of_0_reads_nothing", {4, 3}, 1, 0);
  unread.inputs["Input"][0].values.assign(12, NAN);
  unread.gradients = {"X", "Y"};
  cases.push_back(unread);
}

}  // namespace skiff::harness
