#include <cmath>
#include <utility>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddEluCases(CaseList& cases) {
  const auto elu = [](float alpha) -> UnaryFunction {
    return [alpha](double x) { return x < 0 ? alpha * (std::exp(x) - 1) : x; };
  };
  AddUnaryCases("elu", elu(1.0f), -3, 3, {0}, {}, cases);
  for (const auto& [name, alpha] :
       {std::pair("flat", 0.25f), std::pair("steep", 3.0f), std::pair("falling", -0.5f)}) {
    OpCase one = UnaryCase(name, "elu", UniformAwayFrom({3, 7}, 20, {0}, 0.05, -3, 3), elu(alpha));
    one.attrs = {{"alpha", alpha}};
    one.gradients = {"X"};
    cases.push_back(std::move(one));
  }
}

}  // namespace skiff::harness
