#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddLogicalXorCases(CaseList& cases) {
  AddBoolCases(
      "logical_xor", [](double x, double y) { return (x != 0) != (y != 0) ? 1.0 : 0.0; }, cases);
}

}  // namespace skiff::harness
