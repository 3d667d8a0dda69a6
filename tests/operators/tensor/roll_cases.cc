#include "tests/operators/tensor/coordinates.h"

namespace skiff::harness {

void AddRollCases(CaseList& cases) {
  using Longs = std::vector<int64_t>;
  const auto add = [&](const std::string& name, const Array& x, const Longs& shifts,
                       const Longs& axes) {
    OpCase made{.name = name,
                .type = "roll",
                .inputs = {{"X", {x}}},
                .attrs = {{"shifts", shifts}, {"axis", axes}},
                .outputs = {{"Out", 1}},
                .gradients = {"X"}};
    if (x.fixed_dtype) made.gradients.clear();
    made.reference = [shifts, axes](const Arrays& inputs) {
      Array out = inputs.at("X")[0];
      const Shape given = out.shape;
      if (axes.empty()) out.shape = {given.element_count()};
      // One shift after the other.
      for (size_t i = 0; i < shifts.size(); ++i) {
        const Array from = out;
        const int axis = axes.empty() ? 0 : NormalizeAxis(axes[i], given.rank(), "axis");
        const int64_t extent = from.shape[axis];
        const Array rolled = Generated(from.shape, [&](std::vector<int64_t> at) {
          int64_t& place = at[static_cast<size_t>(axis)];
          place = ((place - shifts[i]) % extent + extent) % extent;
          return from.values[IndexOf(from.shape, at)];
        });
        out.values = rolled.values;
      }
      out.shape = given;
      return Arrays{{"Out", {out}}};
    };
    cases.push_back(std::move(made));
  };
  add("columns", Uniform({3, 5}, 1), {2}, {1});
  add("back", Uniform({3, 5}, 2), {-1}, {0});
  add("flat", Uniform({3, 5}, 3), {7}, {});
  add("flat_back", Uniform({3, 5}, 4), {-4}, {});
  add("two_axes", Uniform({4, 5, 3}, 5), {3, -2}, {0, 1});
  add("three_axes", Uniform({4, 5, 3}, 6), {1, 2, 1}, {0, 1, -1});
  add("one_axis_twice", Uniform({3, 5}, 7), {2, 4, 1}, {1, -1, 0});
  add("beyond_the_extent", Uniform({3, 5}, 8), {-13}, {1});
  add("by_nothing", Uniform({3, 5}, 9), {10}, {1});
  add("scalar", Uniform(Shape(), 10), {1}, {});
  add("empty", Uniform({0, 5}, 11), {1, 2}, {0, 1});
  add("int64", Integers({4, 5}, 12, -9, 9), {1, 1}, {0, 1});
  add("bool", Integers({9}, 13, 0, 2, DType::kBool), {4}, {0});
  add("windows", Uniform({8, 56, 56, 31}, 14), {-3, -3}, {1, 2});
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
