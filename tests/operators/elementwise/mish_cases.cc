#include <cmath>
#include <utility>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddMishCases(CaseList& cases) {
  const auto mish = [](float threshold) -> UnaryFunction {
    return [=](double x) { return x * std::tanh(x > threshold ? x : std::log(1 + std::exp(x))); };
  };
  AddUnaryCases("mish", mish(20), -6, 6, {}, {}, cases);
  OpCase large = UnaryCase("beyond_the_threshold", "mish", Uniform({3, 17}, 19, -60, 60), mish(20));
  large.gradients = {"X"};
  cases.push_back(std::move(large));
  OpCase early = UnaryCase("low_threshold", "mish",
                           UniformAwayFrom({3, 17}, 20, {-0.5}, 0.05, -4, 4), mish(-0.5f));
  early.attrs = {{"threshold", -0.5f}};
  early.gradients = {"X"};
  cases.push_back(std::move(early));
  AddLimitCases("", "mish", {}, {0, INFINITY}, {0, 1}, cases);
}

}  // namespace skiff::harness
