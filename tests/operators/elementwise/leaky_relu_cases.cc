#include <utility>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddLeakyReluCases(CaseList& cases) {
  const auto leaky = [](float alpha) -> UnaryFunction {
    return [alpha](double x) { return x < 0 ? x * alpha : x; };
  };
  AddUnaryCases("leaky_relu", leaky(0.02f), -1, 1, {0}, {}, cases);
  for (const auto& [name, alpha] :
       {std::pair("quarter_slope", 0.25f), std::pair("steep", 3.0f), std::pair("falling", -0.5f)}) {
    OpCase slope = UnaryCase(name, "leaky_relu", UniformAwayFrom({3, 7}, 20, {0}), leaky(alpha));
    slope.attrs = {{"alpha", alpha}};
    slope.gradients = {"X"};
    cases.push_back(std::move(slope));
  }
}

}  // namespace skiff::harness
