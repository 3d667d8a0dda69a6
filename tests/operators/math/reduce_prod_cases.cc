#include <functional>
#include <numeric>

#include "tests/operators/math/reduction_reference.h"

namespace skiff::harness {
namespace {

double Product(const std::vector<double>& elements) {
  return std::accumulate(elements.begin(), elements.end(), 1.0, std::multiplies<>());
}

OpCase ReduceProdCase(const std::string& name, const Array& x, const ReducedAxes& axes) {
  return ReductionCase("reduce_prod", name, x, axes, Product);
}

}  // namespace

void AddReduceProdCases(CaseList& cases) {
  for (const ReductionLayout& layout : ReductionLayouts()) {
    // Near 1: the products of thousands stay in range.
    const bool is_long = layout.shape.element_count() > 2000;
    const Array x = is_long ? Uniform(layout.shape, 6, 0.9999, 1.0001)
                            : UniformAwayFrom(layout.shape, 6, {0}, 0.3, -1.5, 1.5);
    cases.push_back(ReduceProdCase(layout.name, x, layout.axes));
    if (!is_long) cases.back().gradients = {"X"};
  }
  cases.back().accepted_wrong_inputs = {AnyRankOfOne("Out@GRAD")};
  // Rows without, with one and with two zeros.
  Array zeros = UniformAwayFrom({3, 5}, 7, {0}, 0.3);
  zeros.values[6] = zeros.values[11] = zeros.values[14] = 0;
  cases.push_back(ReduceProdCase("zeros_in_rows", zeros, {.dim = {1}}));
  cases.back().gradients = {"X"};
  Array columns = UniformAwayFrom({5, 3}, 8, {0}, 0.3);
  columns.values[4] = columns.values[2] = columns.values[14] = 0;
  cases.push_back(ReduceProdCase("zeros_in_columns", columns, {.dim = {0}}));
  cases.back().gradients = {"X"};
  cases.push_back(ReduceProdCase("of_nothing", Uniform({0, 3}, 6), {.dim = {0}}));
  cases.back().gradients = {"X"};
  cases.push_back(
      ReduceProdCase("int32", Integers({4, 5, 3}, 7, -9, 9, DType::kInt32), {.dim = {1}}));
  cases.push_back(ReduceProdCase("int64", Integers({4, 9}, 8, -9, 9), {.dim = {1}}));
}

}  // namespace skiff::harness
