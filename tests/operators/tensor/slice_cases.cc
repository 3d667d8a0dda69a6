#include "tests/operators/tensor/coordinates.h"

namespace skiff::harness {
namespace {

// The start of the box, its shape, and the shape of Out.
struct ExpectedBox {
  std::vector<int64_t> start;
  Shape box;
  Shape out;
};

}  // namespace

void AddSliceCases(CaseList& cases) {
  using Ints = std::vector<int32_t>;
  const auto add = [&](const std::string& name, const Array& input, AttributeMap attrs,
                       const ExpectedBox& expected) {
    OpCase made{.name = name,
                .type = "slice",
                .inputs = {{"Input", {input}}},
                .attrs = std::move(attrs),
                .outputs = {{"Out", 1}},
                .gradients = {"Input"}};
    if (input.fixed_dtype) made.gradients.clear();
    made.reference = [expected](const Arrays& inputs) {
      const Array& from = inputs.at("Input")[0];
      Array out = Generated(expected.box, [&](std::vector<int64_t> at) {
        for (size_t k = 0; k < at.size(); ++k) at[k] += expected.start[k];
        return from.values[IndexOf(from.shape, at)];
      });
      out.fixed_dtype = from.fixed_dtype;
      out.dtype = from.dtype;
      return Arrays{{"Out", {Reshaped(out, expected.out)}}};
    };
    cases.push_back(std::move(made));
  };
  const auto cut = [](Ints axes, Ints starts, Ints ends) {
    return AttributeMap{{"axes", axes}, {"starts", starts}, {"ends", ends}};
  };
  const auto dropping = [&](Ints axes, Ints starts, Ints ends, Ints decrease) {
    AttributeMap attrs = cut(axes, starts, ends);
    attrs["decrease_axis"] = decrease;
    attrs["infer_flags"] = Ints(axes.size(), 1);
    return attrs;
  };
  add("one_axis", Uniform({4, 5}, 1), cut({1}, {1}, {4}), {{0, 1}, {4, 3}, {4, 3}});
  add("two_axes", Uniform({4, 5, 3}, 2), cut({0, 2}, {1, 0}, {3, 2}),
      {{1, 0, 0}, {2, 5, 2}, {2, 5, 2}});
  add("negative_bounds", Uniform({6, 5}, 3), cut({0, 1}, {-3, -4}, {-1, -1}),
      {{3, 1}, {2, 3}, {2, 3}});
  add("bounds_beyond_the_tensor", Uniform({4, 5}, 4), cut({0, 1}, {-100, 2}, {100, 2147483647}),
      {{0, 2}, {4, 3}, {4, 3}});
  add("end_before_start", Uniform({4, 5}, 5), cut({0}, {3}, {1}), {{3, 0}, {0, 5}, {0, 5}});
  add("first_token", Uniform({3, 4, 5}, 6), dropping({1}, {0}, {1}, {1}),
      {{0, 0, 0}, {3, 1, 5}, {3, 5}});
  add("last_column", Uniform({3, 4}, 7), dropping({1}, {-1}, {2147483647}, {-1}),
      {{0, 3}, {3, 1}, {3}});
  add("to_a_scalar", Uniform({3, 4}, 8), dropping({0, 1}, {1, 2}, {2, 3}, {0, 1}),
      {{1, 2}, {1, 1}, Shape()});
  add("whole", Uniform({3, 4}, 9), cut({}, {}, {}), {{0, 0}, {3, 4}, {3, 4}});
  add("empty", Uniform({0, 4}, 10), cut({1}, {1}, {3}), {{0, 1}, {0, 2}, {0, 2}});
  add("int64", Integers({4, 5}, 11, -9, 9), cut({1}, {1}, {4}), {{0, 1}, {4, 3}, {4, 3}});
  add("many_rows", Uniform({500, 20, 9}, 12), cut({1}, {2}, {19}),
      {{0, 2, 0}, {500, 17, 9}, {500, 17, 9}});
  cases.back().gradients.clear();
}

}  // namespace skiff::harness
