#include "tests/operators/tensor/coordinates.h"

namespace skiff::harness {

void AddSqueeze2Cases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Shape& x, std::vector<int32_t> axes,
                       const Shape& out) {
    cases.push_back(
        ReshapingCase("squeeze2", name, Uniform(x, 1), {{"axes", std::move(axes)}}, out));
  };
  add("all_ones", {2, 1, 3, 1}, {}, {2, 3});
  add("one_axis", {2, 1, 3, 1}, {1}, {2, 3, 1});
  add("negative_axes", {2, 1, 3, 1}, {-1, -3}, {2, 3});
  add("keeps_axes_that_are_not_one", {2, 1, 3}, {1, 2}, {2, 3});
  cases.push_back(ReshapingCase("squeeze2", "strict", Uniform({2, 1, 3}, 1),
                                {{"axes", std::vector<int32_t>{1}}, {"strict", true}}, {2, 3}));
  add("empty", {3, 0, 1}, {2}, {3, 0});
}

}  // namespace skiff::harness
