#include "tests/operators/tensor/coordinates.h"

namespace skiff::harness {

void AddPadCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& x,
                       const std::vector<int32_t>& paddings, float value) {
    OpCase made{.name = name,
                .type = "pad",
                .inputs = {{"X", {x}}},
                .attrs = {{"paddings", paddings}},
                .outputs = {{"Out", 1}},
                .gradients = {"X"}};
    if (value != 0.0f) made.attrs["pad_value"] = value;
    if (x.fixed_dtype) made.gradients.clear();
    made.reference = [paddings, value](const Arrays& inputs) {
      const Array& from = inputs.at("X")[0];
      Shape shape = from.shape;
      for (int axis = 0; axis < shape.rank(); ++axis) {
        const size_t i = 2 * static_cast<size_t>(axis);
        shape[axis] += paddings[i] + paddings[i + 1];
      }
      const Array out = Generated(shape, [&](std::vector<int64_t> at) {
        for (size_t k = 0; k < at.size(); ++k) {
          at[k] -= paddings[2 * k];
          if (at[k] < 0 || at[k] >= from.shape[static_cast<int>(k)]) return double{value};
        }
        return from.values[IndexOf(from.shape, at)];
      });
      return Arrays{{"Out", {TypedLike(out, from)}}};
    };
    cases.push_back(std::move(made));
  };
  add("matrix", Uniform({3, 5}, 1), {1, 2, 3, 0}, 1.5f);
  add("with_zeros", Uniform({3, 5}, 2), {0, 1, 1, 1}, 0.0f);
  add("outer_axis", Uniform({3, 2, 5}, 3), {2, 1, 0, 0, 0, 0}, -2.0f);
  add("middle_axis", Uniform({3, 2, 5}, 4), {0, 0, 1, 3, 0, 0}, -2.0f);
  add("every_axis", Uniform({2, 3, 2, 3}, 5), {1, 0, 0, 2, 1, 1, 2, 1}, 0.25f);
  add("nothing", Uniform({3, 5}, 6), {0, 0, 0, 0}, 7.0f);
  add("scalar", Uniform(Shape(), 7), {}, 7.0f);
  add("empty", Uniform({0, 2}, 8), {1, 1, 0, 2}, 7.0f);
  add("empty_rows", Uniform({3, 0}, 9), {0, 1, 1, 2}, 7.0f);
  add("stays_empty", Uniform({3, 0}, 10), {1, 1, 0, 0}, 7.0f);
  add("int64", Integers({3, 4}, 11, -9, 9), {1, 0, 0, 1}, -3.0f);
  add("int32", Integers({3, 4}, 12, -9, 9, DType::kInt32), {1, 0, 0, 1}, -3.0f);
  add("many_rows", Uniform({61, 17, 33}, 13), {1, 1, 0, 2, 3, 1}, 1.0f);
  cases.back().gradients.clear();
}

}  // namespace skiff::harness
