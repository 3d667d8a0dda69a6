#include "tests/harness/op_case.h"

namespace skiff::harness {

void AddFillZerosLikeCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& x) {
    cases.push_back({.name = name,
                     .type = "fill_zeros_like",
                     .inputs = {{"X", {x}}},
                     .reference =
                         [](const Arrays& inputs) {
                           Array zeros = inputs.at("X")[0];
                           zeros.values.assign(zeros.values.size(), 0.0);
                           return Arrays{{"Out", {zeros}}};
                         },
                     .outputs = {{"Out", 1}}});
  };
  add("image", Uniform({2, 17, 3, 2}, 1));
  add("empty", Uniform({0, 3}, 2));
  add("int64", Integers({5}, 3, -9, 9));
}

}  // namespace skiff::harness
