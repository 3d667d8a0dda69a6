#include <cmath>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddIncrementCases(CaseList& cases) {
  OpCase one =
      UnaryCase("default_step", "increment", Uniform({1}, 1), [](double x) { return x + 1; });
  one.unchecked_gradient = "its gradient op is no derivative: it takes the step back";
  cases.push_back(one);
  one = UnaryCase("step", "increment", Uniform({1, 1}, 2), [](double x) { return x - 2.5; });
  one.attrs = {{"step", -2.5f}};
  cases.push_back(one);
  for (const DType dtype : {DType::kInt32, DType::kInt64}) {
    one = UnaryCase(std::string(DTypeName(dtype)), "increment", Values({1}, {41}, dtype),
                    [](double x) { return x + 2; });
    one.attrs = {{"step", 2.0f}};
    cases.push_back(one);
  }
}

}  // namespace skiff::harness
