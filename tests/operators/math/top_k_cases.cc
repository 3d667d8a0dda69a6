#include <algorithm>
#include <numeric>

#include "tests/operators/half_case.h"

namespace skiff::harness {
namespace {

Arrays TopKReference(const Arrays& inputs, int64_t k) {
  const Array& x = inputs.at("X")[0];
  const int64_t columns = x.shape.dim(-1);
  const int64_t rows = x.shape.element_count(0, x.shape.rank() - 1);
  Shape shape = x.shape;
  shape[shape.rank() - 1] = k;
  std::vector<double> values;
  std::vector<double> places;
  for (int64_t row = 0; row < rows; ++row) {
    const double* from = x.values.data() + row * columns;
    std::vector<int64_t> order(static_cast<size_t>(columns));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [from](int64_t a, int64_t b) { return from[a] > from[b]; });
    for (int64_t i = 0; i < k; ++i) {
      const int64_t place = order[static_cast<size_t>(i)];
      values.push_back(from[place]);
      places.push_back(static_cast<double>(place));
    }
  }
  Array out = x;
  out.shape = shape;
  out.values = values;
  return {{"Out", {out}}, {"Indices", {Values(shape, places, DType::kInt64)}}};
}

OpCase CaseOfTopK(const std::string& name, const Array& x, int32_t k) {
  OpCase result{.name = name,
                .type = "top_k",
                .inputs = {{"X", {x}}},
                .attrs = {{"k", k}},
                .reference = [k](const Arrays& inputs) { return TopKReference(inputs, k); },
                .outputs = {{"Out", 1}, {"Indices", 1}}};
  return result;
}

OpCase TopKCase(const std::string& name, const Shape& shape, int32_t k) {
  OpCase result = CaseOfTopK(name, Distinct(shape, 14), k);
  result.gradients = {"X"};
  result.loss_outputs = {"Out"};
  return result;
}

}  // namespace

void AddTopKCases(CaseList& cases) {
  cases.push_back(TopKCase("best", {4, 10}, 1));
  cases.push_back(TopKCase("best_five", {3, 17}, 5));
  cases.push_back(TopKCase("all", {3, 7}, 7));
  cases.push_back(TopKCase("rank_3", {2, 3, 6}, 2));
  cases.push_back(TopKCase("vector", {9}, 3));
  cases.push_back(TopKCase("no_rows", {0, 5}, 2));
  cases.push_back(CaseOfTopK("equal_values", Integers({6, 20}, 15, 0, 4, DType::kInt64), 6));
  cases.push_back(CaseOfTopK("equal_int32", Integers({6, 20}, 15, 0, 4, DType::kInt32), 20));
  OpCase by_tensor = CaseOfTopK("k_as_tensor", Distinct({3, 8}, 16), 1);
  by_tensor.inputs["K"] = {Values({1}, {4}, DType::kInt32)};
  by_tensor.reference = [](const Arrays& inputs) { return TopKReference(inputs, 4); };
  cases.push_back(by_tensor);
  cases.push_back(InHalf(by_tensor));
}

}  // namespace skiff::harness
