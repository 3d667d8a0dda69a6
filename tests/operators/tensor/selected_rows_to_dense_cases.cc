#include "tests/harness/op_case.h"
#include "tests/harness/selected_rows_cases.h"

namespace skiff::harness {

void AddSelectedRowsToDenseCases(CaseList& cases) {
  auto kinds = SelectedRowsOfAllKinds();
  kinds.push_back(CrowdedSelectedRows());
  for (const auto& [name, x] : kinds) {
    cases.push_back({.name = name,
                     .type = "selected_rows_to_dense",
                     .inputs = {{"X", {x}}},
                     .reference =
                         [](const Arrays& inputs) {
                           return Arrays{{"Out", {Dense(inputs.at("X")[0])}}};
                         },
                     .outputs = {{"Out", 1}}});
  }
}

}  // namespace skiff::harness
