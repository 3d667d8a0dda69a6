#include <cmath>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddSqrtCases(CaseList& cases) {
  const UnaryFunction f = [](double x) { return std::sqrt(x); };
  AddUnaryCases("sqrt", f, 0.1, 4, {}, {}, cases);
}

}  // namespace skiff::harness
