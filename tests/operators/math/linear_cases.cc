#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

// Out[i, j] = sum_p X[i, p] * Y[p, j] + Bias[j], or Y[j, p].
Arrays LinearReference(const Arrays& inputs, int x_rows, bool trans_y) {
  const Array& x = inputs.at("X")[0];
  const Array& y = inputs.at("Y")[0];
  const Array& bias = inputs.at("Bias")[0];
  const int64_t m = x.shape.element_count(0, x_rows);
  const int64_t k = y.shape[trans_y ? 1 : 0];
  const int64_t n = y.shape[trans_y ? 0 : 1];
  Shape shape;
  for (int i = 0; i < x_rows; ++i) shape.Append(x.shape[i]);
  shape.Append(n);
  std::vector<double> out;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = bias.values[static_cast<size_t>(j)];
      for (int64_t p = 0; p < k; ++p) {
        sum += x.values[static_cast<size_t>(i * k + p)] *
               y.values[static_cast<size_t>(trans_y ? j * k + p : p * n + j)];
      }
      out.push_back(sum);
    }
  }
  return {{"Out", {Values(shape, out)}}};
}

OpCase LinearCase(const std::string& name, const Shape& x, const Shape& y, int x_rows = 1,
                  bool trans_y = false) {
  return {
      .name = name,
      .type = "linear",
      .inputs = {{"X", {Uniform(x, 1)}},
                 {"Y", {Uniform(y, 2)}},
                 {"Bias", {Uniform({y[trans_y ? 0 : 1]}, 3)}}},
      .attrs = {{"x_num_col_dims", int32_t{x_rows}}, {"trans_y", trans_y}},
      .reference = [=](const Arrays& inputs) { return LinearReference(inputs, x_rows, trans_y); },
      .outputs = {{"Out", 1}}};
}

}  // namespace

void AddLinearCases(CaseList& cases) {
  cases.push_back(LinearCase("square", {4, 4}, {4, 4}));
  cases.push_back(LinearCase("odd", {5, 7}, {7, 3}));
  cases.push_back(LinearCase("transposed", {5, 7}, {3, 7}, 1, true));
  cases.push_back(LinearCase("row", {1, 9}, {9, 5}));
  cases.push_back(LinearCase("column", {6, 1}, {1, 6}));
  cases.push_back(LinearCase("one", {1, 1}, {1, 1}));
  cases.push_back(LinearCase("several_blocks", {37, 70}, {70, 67}));
  // More terms than are added at a time, and more columns than a block has.
  cases.push_back(LinearCase("long_sums", {6, 600}, {600, 5}));
  // In parts on a device: equal ones, and with a rest.
  cases.push_back(LinearCase("sums_in_parts", {6, 2048}, {2048, 5}));
  cases.push_back(LinearCase("sums_in_parts_and_a_rest", {6, 2100}, {2100, 5}));
  cases.push_back(LinearCase("wide", {3, 4}, {4, 530}));
  cases.push_back(LinearCase("x_of_rank_4", {2, 3, 2, 2}, {4, 5}, 2));
  cases.push_back(LinearCase("x_columns_of_rank_3", {2, 3, 4}, {12, 5}));
  cases.push_back(LinearCase("no_rows", {0, 4}, {4, 3}));
  cases.push_back(LinearCase("nothing_to_sum", {3, 0}, {0, 2}));
  for (const auto& [name, x, y] :
       {std::tuple("fc_2048x768x3072", Shape{2048, 768}, Shape{768, 3072}),
        std::tuple("fc_1920x512x8000", Shape{1920, 512}, Shape{512, 8000})}) {
    OpCase fully_connected = LinearCase(name, x, y);
    fully_connected.benchmark_only = true;
    cases.push_back(fully_connected);
  }
}

}  // namespace skiff::harness
