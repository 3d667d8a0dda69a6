#include "tests/harness/op_case.h"

namespace skiff::harness {

void AddSquaredGlobalNormCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const std::vector<Shape>& shapes) {
    OpCase made{.name = name, .type = "squared_global_norm", .outputs = {{"Out", 1}}};
    uint64_t seed = 1;
    for (const Shape& shape : shapes) made.inputs["X"].push_back(Uniform(shape, seed++));
    made.reference = [](const Arrays& inputs) {
      double sum = 0;
      for (const Array& x : inputs.at("X")) {
        for (const double value : x.values) sum += value * value;
      }
      return Arrays{{"Out", {Values({1}, {sum})}}};
    };
    cases.push_back(std::move(made));
  };
  add("one", {{5, 7}});
  add("empty", {{0, 3}});
  add("several", {{5, 7}, Shape(), {0}, {17}});
  add("several_parts", {{3}, {131, 257}, {16384}, {16385}});
}

}  // namespace skiff::harness
