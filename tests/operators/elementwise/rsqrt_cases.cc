#include <cmath>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddRsqrtCases(CaseList& cases) {
  AddUnaryCases(
      "rsqrt", [](double x) { return 1 / std::sqrt(x); }, 0.2, 4, {}, {}, cases);
}

}  // namespace skiff::harness
