#include "tests/operators/tensor/coordinates.h"

namespace skiff::harness {

void AddUnsqueeze2Cases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Shape& x, std::vector<int32_t> axes,
                       const Shape& out) {
    cases.push_back(
        ReshapingCase("unsqueeze2", name, Uniform(x, 1), {{"axes", std::move(axes)}}, out));
  };
  add("front", {2, 3}, {0}, {1, 2, 3});
  add("one_after_the_other", {2, 3}, {1, 2}, {2, 1, 1, 3});
  add("negative", {2, 3}, {-1}, {2, 3, 1});
  add("negative_twice", {2, 3}, {-1, -2}, {2, 3, 1, 1});
  add("empty", {0, 3}, {2}, {0, 3, 1});
}

}  // namespace skiff::harness
