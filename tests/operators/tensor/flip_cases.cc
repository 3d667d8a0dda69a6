#include <algorithm>

#include "tests/operators/tensor/coordinates.h"

namespace skiff::harness {

void AddFlipCases(CaseList& cases) {
  using Ints = std::vector<int32_t>;
  const auto add = [&](const std::string& name, const Array& x, const Ints& axes) {
    OpCase made{.name = name,
                .type = "flip",
                .inputs = {{"X", {x}}},
                .attrs = {{"axis", axes}},
                .outputs = {{"Out", 1}},
                .gradients = {"X"}};
    if (x.fixed_dtype) made.gradients.clear();
    made.reference = [axes](const Arrays& inputs) {
      const Array& from = inputs.at("X")[0];
      const int rank = from.shape.rank();
      const Array out = Generated(from.shape, [&](std::vector<int64_t> at) {
        for (int axis = 0; axis < rank; ++axis) {
          const bool flips = std::count(axes.begin(), axes.end(), axis) > 0 ||
                             std::count(axes.begin(), axes.end(), axis - rank) > 0;
          int64_t& place = at[static_cast<size_t>(axis)];
          if (flips) place = from.shape[axis] - 1 - place;
        }
        return from.values[IndexOf(from.shape, at)];
      });
      return Arrays{{"Out", {TypedLike(out, from)}}};
    };
    cases.push_back(std::move(made));
  };
  add("rows", Uniform({4, 5}, 1), {0});
  add("columns", Uniform({4, 5}, 2), {-1});
  add("middle", Uniform({2, 3, 5}, 3), {1});
  add("outer_and_inner", Uniform({2, 3, 5}, 4), {0, 2});
  add("all", Uniform({2, 3, 5}, 5), {0, 1, 2});
  add("one_axis_by_two_names", Uniform({4, 5}, 6), {1, -1});
  add("none", Uniform({4, 5}, 7), {});
  add("scalar", Uniform(Shape(), 8), {});
  add("empty", Uniform({4, 0}, 9), {0, 1});
  add("int64", Integers({4, 5}, 10, -9, 9), {1});
  add("int32", Integers({31}, 11, -9, 9, DType::kInt32), {0});
  add("bool", Integers({9}, 12, 0, 2, DType::kBool), {0});
  add("images", Uniform({8, 3, 65, 63}, 13), {3});
  cases.back().gradients.clear();
}

}  // namespace skiff::harness
