#include <cmath>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddIsnanV2Cases(CaseList& cases) {
  AddPredicateCases(
      "isnan_v2", [](double x) { return std::isnan(x); }, cases);
}

}  // namespace skiff::harness
