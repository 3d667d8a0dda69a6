#include <cmath>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddIsinfV2Cases(CaseList& cases) {
  AddPredicateCases(
      "isinf_v2", [](double x) { return std::isinf(x); }, cases);
}

}  // namespace skiff::harness
