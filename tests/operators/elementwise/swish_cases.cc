#include <cmath>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddSwishCases(CaseList& cases) {
  AddUnaryCases(
      "swish", [](double x) { return x / (1 + std::exp(-x)); }, -6, 6, {}, {}, cases);
  AddLimitCases("", "swish", {}, {0, INFINITY}, {0, 1}, cases);
}

}  // namespace skiff::harness
