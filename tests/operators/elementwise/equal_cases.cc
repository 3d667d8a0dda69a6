#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddEqualCases(CaseList& cases) {
  AddBoolCases(
      "equal", [](double x, double y) { return x == y ? 1.0 : 0.0; }, cases);
}

}  // namespace skiff::harness
