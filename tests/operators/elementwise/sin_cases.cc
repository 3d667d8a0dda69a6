#include <cmath>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddSinCases(CaseList& cases) {
  AddUnaryCases(
      "sin", [](double x) { return std::sin(x); }, -7, 7, {}, {}, cases);
}

}  // namespace skiff::harness
