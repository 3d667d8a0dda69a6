#include "tests/operators/tensor/coordinates.h"

namespace skiff::harness {

void AddFlatten2Cases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Shape& x, AttributeMap attrs,
                       const Shape& out) {
    cases.push_back(ReshapingCase("flatten2", name, Uniform(x, 1), std::move(attrs), out));
  };
  add("default_axis", {2, 3, 4}, {}, {2, 12});
  add("axis_0", {2, 3, 4}, {{"axis", 0}}, {1, 24});
  add("axis_at_the_end", {2, 3, 4}, {{"axis", 3}}, {24, 1});
  add("negative_axis", {2, 3, 4}, {{"axis", -1}}, {6, 4});
  add("empty", {0, 3, 4}, {}, {0, 12});
}

}  // namespace skiff::harness
