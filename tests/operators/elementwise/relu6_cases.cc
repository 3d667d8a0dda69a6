#include <algorithm>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddRelu6Cases(CaseList& cases) {
  AddUnaryCases(
      "relu6", [](double x) { return std::clamp(x, 0.0, 6.0); }, -4, 10, {0, 6}, {}, cases);
}

}  // namespace skiff::harness
