#include "tests/harness/op_case.h"

namespace skiff::harness {

void AddAssignCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& x) {
    OpCase made{.name = name,
                .type = "assign",
                .inputs = {{"X", {x}}},
                .reference =
                    [](const Arrays& inputs) {
                      return Arrays{{"Out", inputs.at("X")}};
                    },
                .outputs = {{"Out", 1}},
                .gradients = {"X"}};
    if (x.fixed_dtype) made.gradients.clear();
    cases.push_back(std::move(made));
  };
  add("image", Uniform({2, 17, 3, 2}, 1));
  add("scalar", Uniform(Shape(), 2));
  add("empty", Uniform({0, 3}, 3));
  add("int64", Integers({5}, 4, -9, 9));
  add("bool", Integers({5}, 5, 0, 2, DType::kBool));
}

}  // namespace skiff::harness
