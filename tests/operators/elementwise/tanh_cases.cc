#include <cmath>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddTanhCases(CaseList& cases) {
  const UnaryFunction f = [](double x) { return std::tanh(x); };
  AddUnaryCases("tanh", f, -4, 4, {}, {}, cases);
  cases.push_back(
      UnaryCase("saturated", "tanh", Values({6}, {-1000, -20, -9.5, 9.5, 20, 1000}), f));
}

}  // namespace skiff::harness
