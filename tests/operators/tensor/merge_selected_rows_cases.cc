#include "tests/harness/op_case.h"
#include "tests/harness/selected_rows_cases.h"

namespace skiff::harness {

void AddMergeSelectedRowsCases(CaseList& cases) {
  auto kinds = SelectedRowsOfAllKinds();
  kinds.push_back(CrowdedSelectedRows());
  for (const auto& [name, x] : kinds) {
    cases.push_back({.name = name,
                     .type = "merge_selected_rows",
                     .inputs = {{"X", {x}}},
                     .reference =
                         [](const Arrays& inputs) {
                           return Arrays{{"Out", {Merged(inputs.at("X")[0])}}};
                         },
                     .outputs = {{"Out", 1}}});
  }
}

}  // namespace skiff::harness
