#include <cmath>
#include <numbers>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddAtanCases(CaseList& cases) {
  AddUnaryCases(
      "atan", [](double x) { return std::atan(x); }, -5, 5, {}, {}, cases);
  constexpr double kRight = std::numbers::pi / 2;
  AddLimitCases("", "atan", {}, {.below = -kRight, .above = kRight}, {.below = 0, .above = 0},
                cases);
}

}  // namespace skiff::harness
