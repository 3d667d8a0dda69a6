#include "tests/harness/op_case.h"
#include "tests/harness/selected_rows_cases.h"

namespace skiff::harness {

void AddGetTensorFromSelectedRowsCases(CaseList& cases) {
  for (const auto& [name, x] : SelectedRowsOfAllKinds()) {
    cases.push_back({.name = name,
                     .type = "get_tensor_from_selected_rows",
                     .inputs = {{"X", {x}}},
                     .reference =
                         [](const Arrays& inputs) {
                           // The harness gives zeros for unused slots.
                           Array out = inputs.at("X")[0];
                           out.rows.clear();
                           out.height = -1;
                           return Arrays{{"Out", {out}}};
                         },
                     .outputs = {{"Out", 1}}});
  }
}

}  // namespace skiff::harness
