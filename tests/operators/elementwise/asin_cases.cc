#include <cmath>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddAsinCases(CaseList& cases) {
  const UnaryFunction f = [](double x) { return std::asin(x); };
  AddUnaryCases("asin", f, -0.95, 0.95, {}, {}, cases);
  cases.push_back(
      UnaryCase("edges", "asin", Values({7}, {-1, 1, 0, -1.5, INFINITY, NAN, 1e-30}), f));
  cases.push_back(
      {.name = "gradient_near_one",
       .type = "asin_grad",
       .inputs = {{"X", {Values({4}, {0.9999999f, -0.9999999f, 1, 2})}},
                  {"Out@GRAD", {Values({4}, {1, 2, 1, 1})}}},
       .reference =
           [](const Arrays&) {
             const double x = 0.9999999f;
             const double slope = 1 / std::sqrt(1 - x * x);
             return Arrays{{"X@GRAD", {Values({4}, {slope, 2 * slope, INFINITY, NAN})}}};
           },
       .outputs = {{"X@GRAD", 1}}});
}

}  // namespace skiff::harness
