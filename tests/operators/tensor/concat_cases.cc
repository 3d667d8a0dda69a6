#include "tests/operators/tensor/coordinates.h"

namespace skiff::harness {
namespace {

Array Concatenated(const std::vector<Array>& parts, int axis) {
  Shape shape = parts[0].shape;
  shape[axis] = 0;
  for (const Array& part : parts) shape[axis] += part.shape[axis];
  Array result = Generated(shape, [&](std::vector<int64_t> at) {
    size_t k = 0;
    int64_t& along = at[static_cast<size_t>(axis)];
    for (; along >= parts[k].shape[axis]; ++k) along -= parts[k].shape[axis];
    return parts[k].values[IndexOf(parts[k].shape, at)];
  });
  result.fixed_dtype = parts[0].fixed_dtype;
  result.dtype = parts[0].dtype;
  return result;
}

}  // namespace

void AddConcatCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const std::vector<Array>& parts, int32_t axis) {
    OpCase made{.name = name,
                .type = "concat",
                .inputs = {{"X", parts}},
                .attrs = {{"axis", axis}},
                .outputs = {{"Out", 1}},
                .gradients = {"X"}};
    if (parts[0].fixed_dtype) made.gradients.clear();
    const int positive = axis < 0 ? axis + parts[0].shape.rank() : axis;
    made.reference = [positive](const Arrays& inputs) {
      return Arrays{{"Out", {Concatenated(inputs.at("X"), positive)}}};
    };
    cases.push_back(std::move(made));
  };
  add("rows", {Uniform({2, 3}, 1), Uniform({4, 3}, 2)}, 0);
  add("columns", {Uniform({2, 3}, 3), Uniform({2, 1}, 4), Uniform({2, 5}, 5)}, 1);
  add("middle_negative", {Uniform({2, 3, 4}, 6), Uniform({2, 2, 4}, 7)}, -2);
  add("one_input", {Uniform({3, 2}, 8)}, 1);
  add("single_columns", {Uniform({5, 1}, 9), Uniform({5, 1}, 10)}, -1);
  add("an_empty_part", {Uniform({2, 3}, 11), Uniform({2, 0}, 12)}, 1);
  add("all_empty", {Uniform({0, 3}, 13), Uniform({0, 2}, 14)}, 1);
  add("int64", {Integers({2, 3}, 15, -9, 9), Integers({2, 4}, 16, -9, 9)}, 1);
  std::vector<Array> many;
  for (uint64_t i = 0; i < 66; ++i)
    many.push_back(Uniform({2, static_cast<int64_t>(i % 3 == 1)}, i));
  add("many_inputs", many, 1);
  add("many_rows", {Uniform({3000, 9}, 17), Uniform({3000, 16}, 18)}, 1);
  cases.back().gradients.clear();
}

}  // namespace skiff::harness
