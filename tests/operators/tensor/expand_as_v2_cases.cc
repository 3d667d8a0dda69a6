#include "tests/operators/tensor/repeat_cases.h"

namespace skiff::harness {

void AddExpandAsV2Cases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& x, const Shape& out) {
    const std::vector<int32_t> shape(out.begin(), out.end());
    cases.push_back(RepeatCase("expand_as_v2", name + "_by_shape", x, "target_shape", shape, out));
    OpCase by_tensor = cases.back();
    by_tensor.name = name + "_by_tensor";
    by_tensor.inputs["Y"] = {Integers(out, 20, -9, 9)};
    // What a program knew of the shape when it was built.
    by_tensor.attrs["target_shape"] = std::vector<int32_t>(shape.size(), -1);
    by_tensor.accepted_wrong_inputs = {
        {"Out@GRAD", "other dims", "no input of the gradient op says the dims of Y"}};
    cases.push_back(std::move(by_tensor));
  };
  add("columns", Uniform({3, 1}, 1), {3, 5});
  add("new_dims", Uniform({3, 1}, 2), {2, 4, 3, 5});
  add("as_it_is", Uniform({3, 5}, 3), {3, 5});
  add("scalar", Uniform(Shape(), 4), {2, 3});
  add("scalar_to_scalar", Uniform(Shape(), 5), Shape());
  add("empty", Uniform({0, 1}, 6), {0, 4});
  add("int32", Integers({2, 1}, 7, -9, 9, DType::kInt32), {2, 3});
  add("many_rows", Uniform({1, 3}, 8), {70, 3});
  // Nothing but the tensor says the shape.
  OpCase unsaid = cases.back();
  unsaid.name = "without_target_shape";
  unsaid.attrs.clear();
  unsaid.accepted_wrong_inputs.push_back(
      {"Out@GRAD", "other rank", "no input of the gradient op says the rank of Y"});
  cases.push_back(std::move(unsaid));
}

}  // namespace skiff::harness
