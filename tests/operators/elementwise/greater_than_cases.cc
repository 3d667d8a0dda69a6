#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddGreaterThanCases(CaseList& cases) {
  AddBoolCases(
      "greater_than", [](double x, double y) { return x > y ? 1.0 : 0.0; }, cases);
}

}  // namespace skiff::harness
