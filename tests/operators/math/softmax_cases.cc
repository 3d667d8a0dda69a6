#include <cmath>

#include "tests/operators/math/softmax_reference.h"

namespace skiff::harness {
namespace {

OpCase SoftmaxCase(const std::string& name, const Shape& shape, int32_t axis = -1,
                   double range = 3) {
  const auto formula = [](double x, double sum) { return std::exp(x) / sum; };
  return SoftmaxCaseOf("softmax", formula, name, shape, axis, range);
}

}  // namespace

void AddSoftmaxCases(CaseList& cases) {
  cases.push_back(SoftmaxCase("rows_of_10", {4, 10}));
  cases.push_back(SoftmaxCase("rows_of_16", {3, 16}));
  cases.push_back(SoftmaxCase("rows_of_17", {3, 17}));
  cases.push_back(SoftmaxCase("rows_of_45", {2, 45}));
  cases.push_back(SoftmaxCase("rows_of_1028", {2, 1028}));
  cases.push_back(SoftmaxCase("one_class", {5, 1}));
  cases.push_back(SoftmaxCase("vector", {7}));
  cases.push_back(SoftmaxCase("scalar", {}));
  cases.push_back(SoftmaxCase("scalar_of_axis_0", {}, 0));
  cases.push_back(SoftmaxCase("rank_4", {2, 3, 4, 5}));
  cases.push_back(SoftmaxCase("first_axis", {5, 3}, 0));
  cases.push_back(SoftmaxCase("middle_axis", {2, 4, 17}, 1));
  cases.push_back(SoftmaxCase("channels", {2, 3, 4, 5}, -3));
  // float32 logits of 200 have a rounding error of 8e-6, which exp turns into a relative one.
  OpCase extreme = SoftmaxCase("large_logits", {4, 9}, -1, 200);
  extreme.gradients.clear();
  extreme.float32_tolerance = 5e-5;
  cases.push_back(extreme);
  cases.push_back(SoftmaxCase("several_tiles", {200, 333}));
  cases.push_back(SoftmaxCase("long_rows", {3, 20001}));
  cases.push_back(SoftmaxCase("several_column_tiles", {3, 50, 130}, 1));
  cases.push_back(SoftmaxCase("no_rows", {0, 4}));
  cases.push_back(SoftmaxCase("no_classes", {3, 0}));
  OpCase attention = SoftmaxCase("attention_12288x128", {12288, 128});
  attention.benchmark_only = true;
  cases.push_back(attention);
}

}  // namespace skiff::harness
