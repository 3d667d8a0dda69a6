#include "tests/harness/op_case.h"

namespace skiff::harness {

void AddShapeCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& input) {
    cases.push_back(
        {.name = name,
         .type = "shape",
         .inputs = {{"Input", {input}}},
         .reference =
             [](const Arrays& inputs) {
               const Shape& shape = inputs.at("Input")[0].shape;
               return Arrays{
                   {"Out", {Values({shape.rank()}, {shape.begin(), shape.end()}, DType::kInt32)}}};
             },
         .outputs = {{"Out", 1}}});
  };
  add("of_a_matrix", Uniform({3, 5}, 1));
  add("of_an_empty_tensor", Uniform({2, 0, 7}, 2));
  add("of_a_scalar", Uniform(Shape(), 3));
  add("of_int64", Integers({4}, 4, 0, 9));
  add("of_bool", Integers({1, 1, 6}, 5, 0, 2, DType::kBool));
}

}  // namespace skiff::harness
