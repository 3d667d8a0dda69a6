#include "tests/operators/half_case.h"

namespace skiff::harness {

// tensor_ops_test tests the written text.
void AddPrintCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& in) {
    OpCase made{.name = name,
                .type = "print",
                .inputs = {{"In", {in}}},
                .attrs = {{"first_n", 1},
                          {"message", std::string("case")},
                          {"summarize", 2},
                          {"print_phase", std::string("BACKWARD")}},
                .reference =
                    [](const Arrays& inputs) {
                      return Arrays{{"Out", inputs.at("In")}};
                    },
                .outputs = {{"Out", 1}},
                .gradients = {"In"}};
    if (in.fixed_dtype) made.gradients.clear();
    cases.push_back(std::move(made));
  };
  add("matrix", Uniform({3, 5}, 1));
  cases.push_back(InHalf(cases.back()));
  add("scalar", Uniform(Shape(), 2));
  add("empty", Uniform({0, 5}, 3));
  add("int64", Integers({7}, 4, -9, 9));
  add("bool", Integers({7}, 5, 0, 2, DType::kBool));
}

}  // namespace skiff::harness
