#include "tests/operators/tensor/coordinates.h"

namespace skiff::harness {

void AddSplitCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& x, AttributeMap attrs, int axis,
                       const std::vector<int64_t>& extents) {
    OpCase made{.name = name,
                .type = "split",
                .inputs = {{"X", {x}}},
                .attrs = std::move(attrs),
                .outputs = {{"Out", static_cast<int>(extents.size())}},
                .gradients = {"X"}};
    made.reference = [axis, extents](const Arrays& inputs) {
      const Array& whole = inputs.at("X")[0];
      std::vector<Array> parts;
      int64_t offset = 0;
      for (const int64_t extent : extents) {
        Shape shape = whole.shape;
        shape[axis] = extent;
        parts.push_back(Generated(shape, [&](std::vector<int64_t> at) {
          at[static_cast<size_t>(axis)] += offset;
          return whole.values[IndexOf(whole.shape, at)];
        }));
        offset += extent;
      }
      return Arrays{{"Out", parts}};
    };
    cases.push_back(std::move(made));
  };
  add("halves", Uniform({4, 3}, 1), {{"num", 2}}, 0, {2, 2});
  add("query_key_value", Uniform({2, 3, 12}, 2), {{"num", 3}, {"axis", -1}}, 2, {4, 4, 4});
  add("sections", Uniform({2, 6}, 3), {{"sections", std::vector<int32_t>{1, 2, 3}}, {"axis", 1}}, 1,
      {1, 2, 3});
  add("open_section", Uniform({2, 6, 2}, 4),
      {{"sections", std::vector<int32_t>{1, -1, 3}}, {"axis", 1}}, 1, {1, 2, 3});
  add("empty_open_section", Uniform({2, 4}, 5),
      {{"sections", std::vector<int32_t>{4, -1}}, {"axis", 1}}, 1, {4, 0});
  add("one_piece", Uniform({2, 4}, 6), {{"num", 1}}, 0, {2});
  add("empty", Uniform({0, 4}, 7), {{"num", 2}, {"axis", 1}}, 1, {2, 2});
}

}  // namespace skiff::harness
