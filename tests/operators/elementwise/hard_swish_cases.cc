#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddHardSwishCases(CaseList& cases) {
  const auto hard_swish = [](float threshold, float scale, float offset) -> UnaryFunction {
    return [=](double x) { return x * std::clamp<double>(x + offset, 0, threshold) / scale; };
  };
  AddUnaryCases("hard_swish", hard_swish(6, 6, 3), -5, 5, {-3, 3}, {}, cases);
  // Above the threshold the slope is 4 / 5.
  OpCase one = UnaryCase("own_line", "hard_swish",
                         UniformAwayFrom({3, 7}, 20, {-1, 3}, 0.05, -5, 5), hard_swish(4, 5, 1));
  one.attrs = {{"threshold", 4.0f}, {"scale", 5.0f}, {"offset", 1.0f}};
  one.gradients = {"X"};
  cases.push_back(std::move(one));
  // Their products with the threshold overflow float32.
  cases.push_back(UnaryCase("huge", "hard_swish", Values({3}, {3e38, 1e38, -3e38}),
                            [](double x) { return std::max(x, 0.0); }));
  AddLimitCases("", "hard_swish", {}, {0, INFINITY}, {0, 1}, cases);
}

}  // namespace skiff::harness
