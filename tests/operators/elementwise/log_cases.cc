#include <cmath>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddLogCases(CaseList& cases) {
  const UnaryFunction f = [](double x) { return std::log(x); };
  AddUnaryCases("log", f, 0.1, 9, {}, {}, cases);
  cases.push_back(UnaryCase("wide_range", "log", Values({5}, {1e-30, 1e-10, 1, 1e10, 1e30}), f));
}

}  // namespace skiff::harness
