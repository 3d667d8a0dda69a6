#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddNotEqualCases(CaseList& cases) {
  AddBoolCases(
      "not_equal", [](double x, double y) { return x != y ? 1.0 : 0.0; }, cases);
}

}  // namespace skiff::harness
