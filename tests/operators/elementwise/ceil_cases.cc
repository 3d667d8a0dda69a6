#include <cmath>
#include <vector>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddCeilCases(CaseList& cases) {
  const std::vector<double> jumps = {-3, -2, -1, 0, 1, 2, 3};
  AddUnaryCases(
      "ceil", [](double x) { return std::ceil(x); }, -3, 3, jumps, {}, cases);
}

}  // namespace skiff::harness
