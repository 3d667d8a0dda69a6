#include <cmath>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddIsfiniteV2Cases(CaseList& cases) {
  AddPredicateCases(
      "isfinite_v2", [](double x) { return std::isfinite(x); }, cases);
}

}  // namespace skiff::harness
