#include <cmath>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddFloorCases(CaseList& cases) {
  const UnaryFunction f = [](double x) { return std::floor(x); };
  AddUnaryCases("floor", f, -3, 3, {-3, -2, -1, 0, 1, 2, 3}, {}, cases);
}

}  // namespace skiff::harness
