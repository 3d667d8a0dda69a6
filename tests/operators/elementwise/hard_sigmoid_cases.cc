#include <algorithm>
#include <utility>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddHardSigmoidCases(CaseList& cases) {
  const auto line = [](float slope, float offset) -> UnaryFunction {
    return [=](double x) { return std::clamp(x * slope + offset, 0.0, 1.0); };
  };
  AddUnaryCases("hard_sigmoid", line(0.2f, 0.5f), -4, 4, {-2.5, 2.5}, {}, cases);
  OpCase rising = UnaryCase("steep", "hard_sigmoid", UniformAwayFrom({3, 7}, 20, {-0.125, 0.375}),
                            line(2.0f, 0.25f));
  rising.attrs = {{"slope", 2.0f}, {"offset", 0.25f}};
  rising.gradients = {"X"};
  cases.push_back(std::move(rising));
  OpCase falling = UnaryCase("falling", "hard_sigmoid", UniformAwayFrom({3, 7}, 21, {-0.5, 0.5}),
                             line(-1.0f, 0.5f));
  falling.attrs = {{"slope", -1.0f}};
  falling.gradients = {"X"};
  cases.push_back(std::move(falling));
}

}  // namespace skiff::harness
