#include "tests/operators/tensor/coordinates.h"

namespace skiff::harness {

void AddFlattenContiguousRangeCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Shape& x, AttributeMap attrs,
                       const Shape& out) {
    cases.push_back(
        ReshapingCase("flatten_contiguous_range", name, Uniform(x, 1), std::move(attrs), out));
  };
  add("default_axes", {2, 3, 4}, {}, {2, 3, 4});
  add("to_the_end", {2, 3, 4, 5}, {{"start_axis", 1}, {"stop_axis", -1}}, {2, 60});
  add("in_the_middle", {2, 3, 4, 5}, {{"start_axis", 1}, {"stop_axis", 2}}, {2, 12, 5});
  add("from_the_front", {2, 3, 4}, {{"start_axis", -3}, {"stop_axis", 1}}, {6, 4});
  add("scalar", Shape(), {}, {1});
  add("empty", {2, 0, 4}, {{"start_axis", 0}, {"stop_axis", 1}}, {0, 4});
}

}  // namespace skiff::harness
