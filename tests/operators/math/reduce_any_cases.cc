#include <algorithm>

#include "tests/operators/math/reduction_reference.h"

namespace skiff::harness {
namespace {

double Any(const std::vector<double>& elements) {
  return std::any_of(elements.begin(), elements.end(), [](double x) { return x != 0; }) ? 1 : 0;
}

// Bools, so few of them true that both results occur.
Array ReduceAnyBools(const Shape& shape) {
  Array array = Uniform(shape, 6);
  for (double& value : array.values) value = value > 0.7 ? 1 : 0;
  array.fixed_dtype = true;
  array.dtype = DType::kBool;
  return array;
}

OpCase ReduceAnyCase(const std::string& name, const Array& x, const ReducedAxes& axes) {
  OpCase result = ReductionCase("reduce_any", name, x, axes, Any);
  // Fluid's attribute is of longs; ints are taken as well.
  if (name != "middle") {
    result.attrs["dim"] = std::vector<int64_t>(axes.dim.begin(), axes.dim.end());
  }
  return result;
}

}  // namespace

void AddReduceAnyCases(CaseList& cases) {
  for (const ReductionLayout& layout : ReductionLayouts()) {
    cases.push_back(ReduceAnyCase(layout.name, ReduceAnyBools(layout.shape), layout.axes));
  }
  for (const double value : {0.0, 1.0}) {
    Array equal = ReduceAnyBools({3, 41000});
    equal.values.assign(equal.values.size(), value);
    const std::string name = value == 0 ? "false" : "true";
    cases.push_back(ReduceAnyCase("rows_of_" + name, equal, {.dim = {1}}));
    cases.push_back(ReduceAnyCase("columns_of_" + name, equal, {.dim = {0}}));
  }
  cases.push_back(ReduceAnyCase("of_nothing", ReduceAnyBools({0, 3}), {.dim = {0}}));
}

}  // namespace skiff::harness
