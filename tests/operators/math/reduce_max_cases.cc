#include <algorithm>
#include <cmath>

#include "tests/operators/math/reduction_reference.h"

namespace skiff::harness {
namespace {

// NaN where there is one.
double Max(const std::vector<double>& elements) {
  for (const double element : elements) {
    if (std::isnan(element)) return element;
  }
  return *std::max_element(elements.begin(), elements.end());
}

OpCase ReduceMaxCase(const std::string& name, const Array& x, const ReducedAxes& axes) {
  return ReductionCase("reduce_max", name, x, axes, Max);
}

}  // namespace

void AddReduceMaxCases(CaseList& cases) {
  for (const ReductionLayout& layout : ReductionLayouts()) {
    cases.push_back(ReduceMaxCase(layout.name, Distinct(layout.shape, 6), layout.axes));
    if (layout.shape.element_count() < 2000) cases.back().gradients = {"X"};
  }
  cases.back().accepted_wrong_inputs = {AnyRankOfOne("Out@GRAD")};
  cases.push_back(ReduceMaxCase(
      "infinities", Values({3, 2}, {-INFINITY, -INFINITY, INFINITY, 1, INFINITY, INFINITY}),
      {.dim = {1}}));
  // Beyond the first vectors, in rows and in columns; the first and the last of a row.
  Array holes = Uniform({3, 70}, 9);
  holes.values[69] = holes.values[70] = holes.values[170] = NAN;
  cases.push_back(ReduceMaxCase("nan_in_rows", holes, {.dim = {1}}));
  cases.push_back(ReduceMaxCase("nan_in_columns", holes, {.dim = {0}}));
  cases.push_back(
      ReduceMaxCase("int32", Integers({4, 9, 3}, 7, -50, 50, DType::kInt32), {.dim = {1}}));
  cases.push_back(ReduceMaxCase("int64", Integers({4, 9}, 8, -50, 50), {.dim = {1}}));
  OpCase pooling = ReduceMaxCase("tokens_16x128x768", Distinct({16, 128, 768}, 6), {.dim = {1}});
  pooling.gradients = {"X"};
  pooling.benchmark_only = true;
  cases.push_back(pooling);
}

}  // namespace skiff::harness
