#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddLogicalNotCases(CaseList& cases) {
  AddPredicateCases(
      "logical_not", [](double x) { return x == 0; }, cases);
}

}  // namespace skiff::harness
