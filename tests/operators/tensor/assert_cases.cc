#include "tests/harness/op_case.h"

namespace skiff::harness {

// tensor_ops_test tests conditions that don't hold.
void AddAssertCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Shape& shape) {
    cases.push_back({.name = name,
                     .type = "assert",
                     .inputs = {{"Cond", {Values(shape, {1}, DType::kBool)}},
                                {"Data", {Uniform({2, 3}, 1), Integers({4}, 2, 0, 9)}}},
                     .reference = [](const Arrays&) { return Arrays{}; }});
  };
  add("holds", {1});
  add("holds_as_a_scalar", Shape());
}

}  // namespace skiff::harness
