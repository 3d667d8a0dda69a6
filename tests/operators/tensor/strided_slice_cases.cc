#include "tests/operators/tensor/coordinates.h"

namespace skiff::harness {
namespace {

// The elements that a case expects along each axis of Input: first, first + stride, …
struct ExpectedWalk {
  int64_t first = 0;
  int64_t stride = 1;
  int64_t count = 0;
};

}  // namespace

void AddStridedSliceCases(CaseList& cases) {
  using Ints = std::vector<int32_t>;
  const auto add = [&](const std::string& name, const Array& input, AttributeMap attrs,
                       const std::vector<ExpectedWalk>& expected, const Shape& out_shape) {
    OpCase made{.name = name,
                .type = "strided_slice",
                .inputs = {{"Input", {input}}},
                .attrs = std::move(attrs),
                .outputs = {{"Out", 1}},
                .gradients = {"Input"}};
    if (input.fixed_dtype) made.gradients.clear();
    made.reference = [expected, out_shape](const Arrays& inputs) {
      const Array& from = inputs.at("Input")[0];
      Shape box;
      for (const ExpectedWalk& walk : expected) box.Append(walk.count);
      const Array out = Generated(box, [&](std::vector<int64_t> at) {
        for (size_t k = 0; k < at.size(); ++k) {
          at[k] = expected[k].first + at[k] * expected[k].stride;
        }
        return from.values[IndexOf(from.shape, at)];
      });
      return Arrays{{"Out", {Reshaped(TypedLike(out, from), out_shape)}}};
    };
    cases.push_back(std::move(made));
  };
  const auto cut = [](Ints axes, Ints starts, Ints ends, Ints strides) {
    return AttributeMap{{"axes", axes},
                        {"starts", starts},
                        {"ends", ends},
                        {"strides", strides},
                        {"infer_flags", Ints(axes.size(), 1)}};
  };
  // One axis of six elements.
  const auto walk = [&](const std::string& name, int32_t start, int32_t end, int32_t stride,
                        const ExpectedWalk& expected) {
    add(name, Uniform({6}, 1), cut({0}, {start}, {end}, {stride}), {expected}, {expected.count});
  };
  walk("every_second", 1, 100, 2, {1, 2, 3});
  walk("from_before_the_front", -100, 100, 4, {0, 4, 2});
  walk("from_the_back", -3, -1, 1, {3, 1, 2});
  walk("nothing", 2, 2, 1, {2, 1, 0});
  walk("nothing_at_the_end", 6, 9, 1, {6, 1, 0});
  walk("down", 5, 0, -2, {5, -2, 3});
  walk("down_from_beyond", 100, 1, -1, {5, -1, 4});
  walk("down_through_the_first", 5, -1, -1, {5, -1, 6});
  walk("down_by_three_through_the_first", 4, -1, -3, {4, -3, 2});
  walk("down_to_a_bound_before_the_front", -1, -100, -1, {5, -1, 5});
  walk("down_nothing", 3, 3, -1, {3, -1, 0});
  AttributeMap unflagged = cut({0}, {1}, {5}, {2});
  unflagged.erase("infer_flags");
  add("without_flags", Uniform({6}, 1), unflagged, {{1, 2, 2}}, {2});
  const std::vector<ExpectedWalk> up_and_down = {{0, 2, 2}, {4, -2, 2}, {0, 1, 3}};
  add("two_axes", Uniform({4, 5, 3}, 2), cut({0, 1}, {0, 4}, {4, 0}, {2, -2}), up_and_down,
      {2, 2, 3});
  add("down_both", Uniform({4, 5}, 3), cut({-1, 0}, {4, 3}, {-1, -1}, {-1, -1}),
      {{3, -1, 4}, {4, -1, 5}}, {4, 5});
  AttributeMap dropping = cut({0, 1}, {1, 3}, {2, 0}, {1, -1});
  dropping["decrease_axis"] = Ints{0};
  add("decrease_axis", Uniform({3, 4}, 4), dropping, {{1, 1, 1}, {3, -1, 3}}, {3});
  AttributeMap to_scalar = cut({0}, {2}, {3}, {1});
  to_scalar["decrease_axis"] = Ints{0};
  add("to_a_scalar", Uniform({4}, 5), to_scalar, {{2, 1, 1}}, Shape());
  add("empty", Uniform({0, 4}, 6), cut({0, 1}, {0, 3}, {0, 0}, {1, -1}), {{0, 1, 0}, {3, -1, 3}},
      {0, 3});
  add("int64", Integers({4, 5}, 7, -9, 9), cut({1}, {4}, {-1}, {-2}), {{0, 1, 4}, {4, -2, 3}},
      {4, 3});
  add("bool", Integers({7}, 8, 0, 2, DType::kBool), cut({0}, {0}, {7}, {3}), {{0, 3, 3}}, {3});
  add("many_rows", Uniform({301, 40, 9}, 9), cut({0, 1}, {300, 1}, {-1, 40}, {-2, 3}),
      {{300, -2, 151}, {1, 3, 13}, {0, 1, 9}}, {151, 13, 9});
  cases.back().gradients.clear();
}

}  // namespace skiff::harness
