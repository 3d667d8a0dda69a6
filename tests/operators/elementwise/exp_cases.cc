#include <cmath>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddExpCases(CaseList& cases) {
  const UnaryFunction f = [](double x) { return std::exp(x); };
  AddUnaryCases("exp", f, -4, 4, {}, {}, cases);
  cases.push_back(UnaryCase("underflow", "exp", Values({5}, {-1000, -200, -120, -40, -10}), f));
}

}  // namespace skiff::harness
