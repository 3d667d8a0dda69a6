#include <cmath>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddSoftsignCases(CaseList& cases) {
  // The second derivative jumps at 0.
  AddUnaryCases(
      "softsign", [](double x) { return x / (1 + std::abs(x)); }, -4, 4, {0}, {}, cases);
  AddLimitCases("", "softsign", {}, {-1, 1}, {0, 0}, cases);
}

}  // namespace skiff::harness
