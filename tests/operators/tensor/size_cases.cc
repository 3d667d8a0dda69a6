#include "tests/harness/op_case.h"

namespace skiff::harness {

void AddSizeCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& input, double count) {
    cases.push_back({.name = name,
                     .type = "size",
                     .inputs = {{"Input", {input}}},
                     .reference =
                         [count](const Arrays&) {
                           return Arrays{{"Out", {Values(Shape(), {count}, DType::kInt64)}}};
                         },
                     .outputs = {{"Out", 1}}});
  };
  add("of_a_cube", Uniform({3, 5, 2}, 1), 30);
  add("of_an_empty_tensor", Uniform({2, 0, 7}, 2), 0);
  add("of_a_scalar", Uniform(Shape(), 3), 1);
  add("of_bool", Integers({1, 1, 6}, 5, 0, 2, DType::kBool), 6);
}

}  // namespace skiff::harness
