#include <algorithm>

#include "tests/operators/math/reduction_reference.h"

namespace skiff::harness {
namespace {

double All(const std::vector<double>& elements) {
  return std::all_of(elements.begin(), elements.end(), [](double x) { return x != 0; }) ? 1 : 0;
}

// Bools, so few of them false that both results occur.
Array ReduceAllBools(const Shape& shape) {
  Array array = Uniform(shape, 6);
  for (double& value : array.values) value = value < 0.7 ? 1 : 0;
  array.fixed_dtype = true;
  array.dtype = DType::kBool;
  return array;
}

OpCase ReduceAllCase(const std::string& name, const Array& x, const ReducedAxes& axes) {
  OpCase result = ReductionCase("reduce_all", name, x, axes, All);
  // Fluid's attribute is of longs; ints are taken as well.
  if (name != "middle") {
    result.attrs["dim"] = std::vector<int64_t>(axes.dim.begin(), axes.dim.end());
  }
  return result;
}

}  // namespace

void AddReduceAllCases(CaseList& cases) {
  for (const ReductionLayout& layout : ReductionLayouts()) {
    cases.push_back(ReduceAllCase(layout.name, ReduceAllBools(layout.shape), layout.axes));
  }
  for (const double value : {0.0, 1.0}) {
    Array equal = ReduceAllBools({3, 41000});
    equal.values.assign(equal.values.size(), value);
    const std::string name = value == 0 ? "false" : "true";
    cases.push_back(ReduceAllCase("rows_of_" + name, equal, {.dim = {1}}));
    cases.push_back(ReduceAllCase("columns_of_" + name, equal, {.dim = {0}}));
  }
  cases.push_back(ReduceAllCase("of_nothing", ReduceAllBools({0, 3}), {.dim = {0}}));
}

}  // namespace skiff::harness
