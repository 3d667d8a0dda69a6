#include <cmath>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddErfCases(CaseList& cases) {
  const UnaryFunction f = [](double x) { return std::erf(x); };
  AddUnaryCases("erf", f, -3, 3, {}, {}, cases);
  cases.push_back(UnaryCase("small", "erf", Values({4}, {1e-30, -1e-10, 1e-4, -1e-3}), f));
  cases.push_back(
      UnaryCase("edges", "erf", Values({7}, {NAN, -0.0, 3.9, -3.95, 4, 1e-38, 1e30}), f));
  AddLimitCases("", "erf", {}, {-1, 1}, {0, 0}, cases);
}

}  // namespace skiff::harness
