#include <utility>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddReciprocalCases(CaseList& cases) {
  AddUnaryCases(
      "reciprocal", [](double x) { return 1 / x; }, 0.2, 4, {}, {}, cases);
  OpCase negative = UnaryCase("negative", "reciprocal", Uniform({5, 7}, 20, -3, -0.3),
                              [](double x) { return 1 / x; });
  negative.gradients = {"X"};
  cases.push_back(std::move(negative));
}

}  // namespace skiff::harness
