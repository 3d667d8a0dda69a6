#include "tests/harness/op_case.h"

namespace skiff::harness {

void AddSelectInputCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const std::vector<Array>& xs, int64_t mask) {
    cases.push_back(
        {.name = name,
         .type = "select_input",
         .inputs = {{"X", xs}, {"Mask", {Integers({1}, 1, mask, mask + 1, DType::kInt32)}}},
         .reference =
             [mask](const Arrays& inputs) {
               return Arrays{{"Out", {inputs.at("X")[static_cast<size_t>(mask)]}}};
             },
         .outputs = {{"Out", 1}},
         .gradients = {"X"}});
  };
  add("first", {Uniform({2, 3}, 1), Uniform({2, 3}, 2)}, 0);
  add("second", {Uniform({5}, 3), Uniform({5}, 4)}, 1);
  add("of_three", {Uniform({1}, 5), Uniform({1}, 6), Uniform({1}, 7)}, 2);
}

}  // namespace skiff::harness
