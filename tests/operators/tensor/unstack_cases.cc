#include "tests/operators/tensor/coordinates.h"

namespace skiff::harness {

void AddUnstackCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& x, int32_t given, int axis) {
    const int32_t count = static_cast<int32_t>(x.shape[axis]);
    OpCase made{.name = name,
                .type = "unstack",
                .inputs = {{"X", {x}}},
                .attrs = {{"axis", given}, {"num", count}},
                .outputs = {{"Y", count}},
                .gradients = {"X"}};
    if (x.fixed_dtype) made.gradients.clear();
    made.reference = [axis](const Arrays& inputs) {
      const Array& from = inputs.at("X")[0];
      std::vector<int64_t> dims = from.shape.ToVector();
      dims.erase(dims.begin() + axis);
      std::vector<Array> parts;
      for (int64_t i = 0; i < from.shape[axis]; ++i) {
        const Array part =
            Generated(Shape(std::span<const int64_t>(dims)), [&](std::vector<int64_t> at) {
              at.insert(at.begin() + axis, i);
              return from.values[IndexOf(from.shape, at)];
            });
        parts.push_back(TypedLike(part, from));
      }
      return Arrays{{"Y", parts}};
    };
    cases.push_back(std::move(made));
  };
  add("rows", Uniform({3, 5}, 1), 0, 0);
  add("middle", Uniform({2, 3, 5}, 2), 1, 1);
  add("last", Uniform({2, 3, 5}, 3), -1, 2);
  add("to_scalars", Uniform({3}, 4), 0, 0);
  add("one", Uniform({1, 4}, 5), 0, 0);
  add("empty", Uniform({3, 0}, 6), 0, 0);
  add("int32", Integers({4, 3}, 7, -9, 9, DType::kInt32), 1, 1);
}

}  // namespace skiff::harness
