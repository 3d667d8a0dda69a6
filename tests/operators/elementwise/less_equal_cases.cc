#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddLessEqualCases(CaseList& cases) {
  AddBoolCases(
      "less_equal", [](double x, double y) { return x <= y ? 1.0 : 0.0; }, cases);
}

}  // namespace skiff::harness
