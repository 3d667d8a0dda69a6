#include <cmath>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddRoundCases(CaseList& cases) {
  const UnaryFunction f = [](double x) { return std::floor(std::abs(x) + 0.5) * (x < 0 ? -1 : 1); };
  AddUnaryCases("round", f, -3, 3, {-2.5, -1.5, -0.5, 0.5, 1.5, 2.5}, {}, cases);
  // Away from zero, not to the even number.
  cases.push_back(UnaryCase("halves", "round",
                            Values({9}, {-3.5, -2.5, -1.5, -0.5, 0, 0.5, 1.5, 2.5, 3.5}), f));
}

}  // namespace skiff::harness
