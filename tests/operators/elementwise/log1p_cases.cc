#include <cmath>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddLog1pCases(CaseList& cases) {
  const UnaryFunction f = [](double x) { return std::log1p(x); };
  AddUnaryCases("log1p", f, -0.9, 9, {}, {}, cases);
  cases.push_back(UnaryCase("small", "log1p", Values({4}, {1e-30, -1e-10, 1e-4, -1e-3}), f));
}

}  // namespace skiff::harness
