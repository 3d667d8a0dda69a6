#include "tests/operators/tensor/coordinates.h"

namespace skiff::harness {

void AddStackCases(CaseList& cases) {
  const auto add = [&](const std::string& name, std::vector<Array> xs, int32_t given, int axis) {
    OpCase made{.name = name,
                .type = "stack",
                .inputs = {{"X", std::move(xs)}},
                .attrs = {{"axis", given}},
                .outputs = {{"Y", 1}},
                .gradients = {"X"}};
    if (made.inputs["X"][0].fixed_dtype) made.gradients.clear();
    made.reference = [axis](const Arrays& inputs) {
      const std::vector<Array>& parts = inputs.at("X");
      std::vector<int64_t> dims = parts[0].shape.ToVector();
      dims.insert(dims.begin() + axis, static_cast<int64_t>(parts.size()));
      const Array out =
          Generated(Shape(std::span<const int64_t>(dims)), [&](std::vector<int64_t> at) {
            const Array& part = parts[static_cast<size_t>(at[static_cast<size_t>(axis)])];
            at.erase(at.begin() + axis);
            return part.values[IndexOf(part.shape, at)];
          });
      return Arrays{{"Y", {TypedLike(out, parts[0])}}};
    };
    cases.push_back(std::move(made));
  };
  add("rows", {Uniform({3, 5}, 1), Uniform({3, 5}, 2)}, 0, 0);
  add("middle", {Uniform({3, 5}, 3), Uniform({3, 5}, 4), Uniform({3, 5}, 5)}, 1, 1);
  add("last", {Uniform({3, 5}, 6), Uniform({3, 5}, 7), Uniform({3, 5}, 8)}, -1, 2);
  add("one", {Uniform({3, 5}, 9)}, -2, 1);
  add("scalars", {Uniform(Shape(), 10), Uniform(Shape(), 11)}, 0, 0);
  add("empty", {Uniform({3, 0}, 12), Uniform({3, 0}, 13)}, 1, 1);
  add("int64", {Integers({4}, 14, -9, 9), Integers({4}, 15, -9, 9)}, 1, 1);
  add("bool", {Integers({4}, 16, 0, 2, DType::kBool), Integers({4}, 17, 0, 2, DType::kBool)}, 0, 0);
  const Array mask = Uniform({16, 128, 128}, 18);
  add("ernie_attention_mask", std::vector<Array>(12, mask), 1, 1);
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
