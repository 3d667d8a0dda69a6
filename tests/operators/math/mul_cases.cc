#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

// Out[i, j] = sum_p X[i, p] * Y[p, j].
Arrays MulReference(const Arrays& inputs, int x_rows, int y_rows) {
  const Array& x = inputs.at("X")[0];
  const Array& y = inputs.at("Y")[0];
  const int64_t m = x.shape.element_count(0, x_rows);
  const int64_t k = y.shape.element_count(0, y_rows);
  const int64_t n = y.shape.element_count(y_rows, y.shape.rank());
  Shape shape;
  for (int i = 0; i < x_rows; ++i) shape.Append(x.shape[i]);
  for (int i = y_rows; i < y.shape.rank(); ++i) shape.Append(y.shape[i]);
  std::vector<double> out(static_cast<size_t>(m * n), 0.0);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t p = 0; p < k; ++p) {
        out[static_cast<size_t>(i * n + j)] +=
            x.values[static_cast<size_t>(i * k + p)] * y.values[static_cast<size_t>(p * n + j)];
      }
    }
  }
  return {{"Out", {Values(shape, out)}}};
}

OpCase MulCase(const std::string& name, const Shape& x, const Shape& y, int x_rows = 1,
               int y_rows = 1) {
  OpCase result{
      .name = name,
      .type = "mul",
      .inputs = {{"X", {Uniform(x, 1)}}, {"Y", {Uniform(y, 2)}}},
      .attrs = {{"x_num_col_dims", int32_t{x_rows}}, {"y_num_col_dims", int32_t{y_rows}}},
      .reference = [=](const Arrays& inputs) { return MulReference(inputs, x_rows, y_rows); },
      .outputs = {{"Out", 1}},
      .gradients = {"X", "Y"}};
  return result;
}

}  // namespace

void AddMulCases(CaseList& cases) {
  cases.push_back(MulCase("square", {4, 4}, {4, 4}));
  cases.push_back(MulCase("odd", {5, 7}, {7, 3}));
  cases.push_back(MulCase("row", {1, 9}, {9, 5}));
  cases.push_back(MulCase("column", {6, 1}, {1, 6}));
  cases.push_back(MulCase("one", {1, 1}, {1, 1}));
  cases.push_back(MulCase("several_blocks", {37, 70}, {70, 67}));
  cases.push_back(MulCase("x_of_rank_4", {2, 3, 2, 2}, {4, 5}, 2));
  cases.push_back(MulCase("x_columns_of_rank_3", {2, 3, 4}, {12, 5}, 1));
  cases.push_back(MulCase("y_of_rank_3", {3, 6}, {2, 3, 4}, 1, 2));
  cases.push_back(MulCase("no_rows", {0, 4}, {4, 3}));
  cases.push_back(MulCase("nothing_to_sum", {3, 0}, {0, 2}));
  OpCase fully_connected = MulCase("fc_2048x768x3072", {2048, 768}, {768, 3072});
  fully_connected.benchmark_only = true;
  cases.push_back(fully_connected);
}

}  // namespace skiff::harness
