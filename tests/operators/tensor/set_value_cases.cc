#include <numeric>

#include "tests/operators/tensor/coordinates.h"

namespace skiff::harness {
namespace {

// The elements that a case expects to be set along each axis of Input: first, first + step, …
struct ExpectedSteps {
  int64_t first = 0;
  int64_t step = 1;
  int64_t count = 0;
};

// Input with the value, whose dim k runs along axis value_axes[k] of Input (-1: it is one).
Array WithValue(Array input, const std::vector<ExpectedSteps>& steps, const Array& value,
                const std::vector<int>& value_axes) {
  Shape box;
  for (const ExpectedSteps& along : steps) box.Append(along.count);
  for (int64_t i = 0; i < box.element_count(); ++i) {
    const std::vector<int64_t> at = CoordinatesOf(box, i);
    std::vector<int64_t> in_value;
    for (size_t k = 0; k < value_axes.size(); ++k) {
      const bool repeats = value_axes[k] < 0 || value.shape[static_cast<int>(k)] == 1;
      in_value.push_back(repeats ? 0 : at[static_cast<size_t>(value_axes[k])]);
    }
    std::vector<int64_t> in_input = at;
    for (size_t k = 0; k < at.size(); ++k) in_input[k] = steps[k].first + at[k] * steps[k].step;
    input.values[IndexOf(input.shape, in_input)] = value.values[IndexOf(value.shape, in_value)];
  }
  return input;
}

struct SetValueCase {
  std::string name;
  Array input;
  AttributeMap attrs;
  std::vector<ExpectedSteps> steps;
  Array value;
  std::vector<int> value_axes;
};

}  // namespace

void AddSetValueCases(CaseList& cases) {
  using Longs = std::vector<int64_t>;
  const auto add = [&](const SetValueCase& one) {
    OpCase by_tensor{
        .name = one.name,
        .type = "set_value",
        .inputs = {{"Input", {one.input}}, {"ValueTensor", {one.value}}},
        .attrs = one.attrs,
        .reference =
            [one](const Arrays& inputs) {
              return Arrays{{"Out",
                             {WithValue(inputs.at("Input")[0], one.steps,
                                        inputs.at("ValueTensor")[0], one.value_axes)}}};
            },
        .outputs = {{"Out", 1}},
        .gradients = {"Input", "ValueTensor"},
        .accepted_wrong_inputs = {
            {"Out@GRAD", "other dims", "nothing but the gradient tells the dims of Input"},
            {"Out@GRAD", "other rank", "nothing but the gradient tells the dims of Input"}}};
    if (one.input.fixed_dtype) by_tensor.gradients.clear();
    OpCase by_attribute = by_tensor;
    by_attribute.name += "_by_attribute";
    by_attribute.inputs.erase("ValueTensor");
    // Float attributes have what float32 has of them.
    Array value = one.value;
    for (double& number : value.values) number = static_cast<double>(static_cast<float>(number));
    by_attribute.attrs["values"] = std::vector<double>(value.values.begin(), value.values.end());
    by_attribute.attrs["shape"] = Longs(value.shape.begin(), value.shape.end());
    by_attribute.reference = [one, value](const Arrays& inputs) {
      return Arrays{{"Out", {WithValue(inputs.at("Input")[0], one.steps, value, one.value_axes)}}};
    };
    if (!by_attribute.gradients.empty()) by_attribute.gradients = {"Input"};
    cases.push_back(std::move(by_tensor));
    cases.push_back(std::move(by_attribute));
  };
  const auto at = [](Longs axes, Longs starts, Longs ends, Longs steps) {
    return AttributeMap{{"axes", axes}, {"starts", starts}, {"ends", ends}, {"steps", steps}};
  };
  add({"rows",
       Uniform({4, 5}, 1),
       at({0}, {1}, {3}, {1}),
       {{1, 1, 2}, {0, 1, 5}},
       Uniform({2, 5}, 2),
       {0, 1}});
  add({"one_value",
       Uniform({4, 5}, 3),
       at({0, 1}, {1, 0}, {4, 5}, {2, 3}),
       {{1, 2, 2}, {0, 3, 2}},
       Uniform({1}, 4),
       {1}});
  add({"a_scalar",
       Uniform({4, 5}, 5),
       at({0}, {-1}, {9}, {1}),
       {{3, 1, 1}, {0, 1, 5}},
       Uniform(Shape(), 6),
       {}});
  add({"down",
       Uniform({4, 5}, 7),
       at({0, 1}, {0, 4}, {3, -1}, {2, -2}),
       {{0, 2, 2}, {4, -2, 3}},
       Uniform({3}, 8),
       {1}});
  add({"down_both",
       Uniform({3, 4}, 9),
       at({1, 0}, {3, 2}, {0, -1}, {-1, -1}),
       {{2, -1, 3}, {3, -1, 3}},
       Uniform({3, 3}, 10),
       {0, 1}});
  add({"columns_of_values",
       Uniform({3, 4, 5}, 11),
       at({1}, {1}, {4}, {2}),
       {{0, 1, 3}, {1, 2, 2}, {0, 1, 5}},
       Uniform({3, 1, 5}, 12),
       {0, 1, 2}});
  add({"leading_ones",
       Uniform({3, 4}, 13),
       at({0}, {1}, {3}, {1}),
       {{1, 1, 2}, {0, 1, 4}},
       Uniform({1, 1, 2, 1}, 14),
       {-1, -1, 0, 1}});
  AttributeMap dropping = at({0, 2}, {1, 0}, {2, 4}, {1, 2});
  dropping["decrease_axes"] = Longs{0};
  add({"decrease_axes",
       Uniform({3, 2, 4}, 15),
       dropping,
       {{1, 1, 1}, {0, 1, 2}, {0, 2, 2}},
       Uniform({2, 2}, 16),
       {1, 2}});
  AttributeMap inserting = at({0}, {0}, {2}, {1});
  inserting["none_axes"] = Longs{1};
  add({"none_axes",
       Uniform({3, 4}, 17),
       inserting,
       {{0, 1, 2}, {0, 1, 4}},
       Uniform({2, 1, 4}, 18),
       {0, -1, 1}});
  AttributeMap both = at({1}, {2}, {3}, {1});
  both["decrease_axes"] = Longs{1};
  both["none_axes"] = Longs{1, 2};
  add({"none_behind_a_dropped_axis",
       Uniform({3, 4}, 19),
       both,
       {{0, 1, 3}, {2, 1, 1}},
       Uniform({3, 1, 1}, 20),
       {0, -1, -1}});
  AttributeMap to_scalar = at({0}, {2}, {3}, {1});
  to_scalar["decrease_axes"] = Longs{0};
  add({"one_element", Uniform({4}, 21), to_scalar, {{2, 1, 1}}, Uniform(Shape(), 22), {}});
  add({"nothing",
       Uniform({4, 3}, 23),
       at({0}, {2}, {2}, {1}),
       {{2, 1, 0}, {0, 1, 3}},
       Uniform({3}, 24),
       {1}});
  // Bounds beyond the tensor.
  const auto beyond = [&](const std::string& name, int64_t start, int64_t end,
                          const ExpectedSteps& set) {
    add({name,
         Uniform({5, 2}, 35),
         at({0}, {start}, {end}, {set.step}),
         {set, {0, 1, 2}},
         Uniform({2}, 36),
         {1}});
  };
  beyond("behind", 7, 9, {5, 1, 0});
  beyond("from_before_the_front", -9, 3, {0, 1, 3});
  beyond("to_behind", -6, 9, {0, 2, 3});
  beyond("down_from_behind", 7, 2, {4, -1, 2});
  beyond("down_from_behind_to_the_last", 7, 4, {4, -1, 0});
  beyond("down_from_before_the_front", -7, -1, {0, -1, 1});
  beyond("down_to_before_the_front", 4, -10, {4, -2, 3});
  beyond("down_to_just_before_the_front", 4, -6, {4, -1, 5});
  add({"down_without_elements",
       Uniform({0, 3}, 37),
       at({0}, {3}, {-1}, {-1}),
       {{0, -1, 0}, {0, 1, 3}},
       Uniform({3}, 38),
       {1}});
  add({"everything",
       Uniform({4, 3}, 25),
       at({}, {}, {}, {}),
       {{0, 1, 4}, {0, 1, 3}},
       Uniform({4, 3}, 26),
       {0, 1}});
  add({"no_elements",
       Uniform({0, 3}, 27),
       at({1}, {1}, {2}, {1}),
       {{0, 1, 0}, {1, 1, 1}},
       Uniform({1}, 28),
       {1}});
  for (const DType dtype : {DType::kInt32, DType::kInt64}) {
    add({std::string(DTypeName(dtype)),
         Integers({4, 5}, 29, -9, 9, dtype),
         at({1}, {4}, {-1}, {-2}),
         {{0, 1, 4}, {4, -2, 3}},
         Integers({4, 1}, 30, -9, 9, dtype),
         {0, 1}});
  }
  add({"bool",
       Integers({7}, 31, 0, 2, DType::kBool),
       at({0}, {0}, {7}, {3}),
       {{0, 3, 3}},
       Integers({3}, 32, 0, 2, DType::kBool),
       {0}});
  add({"many_rows",
       Uniform({301, 40, 9}, 33),
       at({0, 1}, {300, 1}, {-1, 40}, {-2, 3}),
       {{300, -2, 151}, {1, 3, 13}, {0, 1, 9}},
       Uniform({151, 1, 9}, 34),
       {0, 1, 2}});
  for (size_t i = cases.size() - 2; i < cases.size(); ++i) cases[i].gradients.clear();
}

}  // namespace skiff::harness
