#include <cmath>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddExpm1Cases(CaseList& cases) {
  const UnaryFunction f = [](double x) { return std::expm1(x); };
  AddUnaryCases("expm1", f, -4, 3, {}, {}, cases);
  cases.push_back(UnaryCase("small", "expm1", Values({4}, {1e-30, -1e-10, 1e-4, -1e-3}), f));
}

}  // namespace skiff::harness
