#include <cmath>
#include <utility>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddSeluCases(CaseList& cases) {
  const auto selu = [](float scale, float alpha) -> UnaryFunction {
    return [=](double x) { return scale * (x < 0 ? alpha * (std::exp(x) - 1) : x); };
  };
  AddUnaryCases("selu", selu(1.0507009873554805f, 1.6732632423543772f), -3, 3, {0}, {}, cases);
  OpCase one = UnaryCase("own_constants", "selu", UniformAwayFrom({3, 7}, 20, {0}, 0.05, -3, 3),
                         selu(2.0f, 0.5f));
  one.attrs = {{"scale", 2.0f}, {"alpha", 0.5f}};
  one.gradients = {"X"};
  cases.push_back(std::move(one));
}

}  // namespace skiff::harness
