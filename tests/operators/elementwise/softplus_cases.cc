#include <cmath>
#include <utility>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddSoftplusCases(CaseList& cases) {
  const auto softplus = [](float beta, float threshold) -> UnaryFunction {
    return [=](double x) {
      return beta * x > threshold ? x : std::log(1 + std::exp(beta * x)) / beta;
    };
  };
  AddUnaryCases("softplus", softplus(1, 20), -6, 6, {}, {}, cases);
  OpCase large =
      UnaryCase("beyond_the_threshold", "softplus", Uniform({3, 17}, 19, -50, 50), softplus(1, 20));
  large.gradients = {"X"};
  cases.push_back(std::move(large));
  OpCase sharp = UnaryCase("sharp", "softplus", UniformAwayFrom({3, 17}, 20, {0.75}, 0.05, -2, 2),
                           softplus(4, 3));
  sharp.attrs = {{"beta", 4.0f}, {"threshold", 3.0f}};
  sharp.gradients = {"X"};
  cases.push_back(std::move(sharp));
  OpCase reversed = UnaryCase("negative_beta", "softplus",
                              UniformAwayFrom({3, 17}, 21, {-2}, 0.05, -5, 5), softplus(-0.5f, 1));
  reversed.attrs = {{"beta", -0.5f}, {"threshold", 1.0f}};
  reversed.gradients = {"X"};
  cases.push_back(std::move(reversed));
}

}  // namespace skiff::harness
