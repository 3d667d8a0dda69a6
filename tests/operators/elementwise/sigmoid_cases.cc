#include <cmath>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddSigmoidCases(CaseList& cases) {
  const UnaryFunction f = [](double x) { return 1 / (1 + std::exp(-x)); };
  AddUnaryCases("sigmoid", f, -6, 6, {}, {}, cases);
  cases.push_back(
      UnaryCase("saturated", "sigmoid", Values({6}, {-1000, -200, -60, 60, 200, 1000}), f));
}

}  // namespace skiff::harness
