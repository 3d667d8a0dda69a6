#include "tests/harness/op_case.h"

namespace skiff::harness {

void AddIsEmptyCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Shape& shape, bool is_empty) {
    cases.push_back(
        {.name = name,
         .type = "is_empty",
         .inputs = {{"X", {Uniform(shape, 1)}}},
         .reference =
             [is_empty](const Arrays&) {
               return Arrays{{"Out", {Values({1}, {is_empty ? 1.0 : 0.0}, DType::kBool)}}};
             },
         .outputs = {{"Out", 1}}});
  };
  add("rows", {2, 3}, false);
  add("no_rows", {0, 3}, true);
  add("no_columns", {3, 0}, true);
  add("scalar", {}, false);
}

}  // namespace skiff::harness
