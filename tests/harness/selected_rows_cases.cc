#include "tests/harness/selected_rows_cases.h"

namespace skiff::harness {

std::vector<std::pair<std::string, Array>> SelectedRowsOfAllKinds() {
  std::vector<int64_t> many(900);
  for (size_t i = 0; i < many.size(); ++i) many[i] = static_cast<int64_t>(i * i % 101) - 1;
  return {{"selected_rows", SelectedRows(Uniform({6, 5}, 60), {3, 0, 3, -1, 6, 3}, 7)},
          {"selected_rows_in_order", SelectedRows(Uniform({4, 2, 3}, 61), {0, 1, 2, 8}, 9)},
          {"selected_rows_unused", SelectedRows(Uniform({3, 5}, 62), {-1, -1, -1}, 7)},
          {"no_selected_rows", SelectedRows(Uniform({0, 5}, 63), {}, 7)},
          {"one_selected_row", SelectedRows(Uniform({5, 3}, 64), {0, 0, 0, 0, 0}, 1)},
          {"selected_rows_of_one_number", SelectedRows(Uniform({4}, 65), {2, 1, 2, -1}, 3)},
          {"selected_rows_of_nothing", SelectedRows(Uniform({2, 0}, 66), {1, 1}, 3)},
          {"many_selected_rows", SelectedRows(Uniform({900, 70}, 67), many, 100)},
          {"wide_selected_rows", SelectedRows(Uniform({5, 1300}, 68), {4, 2, 4, -1, 0}, 5)}};
}

std::pair<std::string, Array> CrowdedSelectedRows() {
  std::vector<int64_t> rows(2100);
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i] = i % 3 == 0 ? 7 : static_cast<int64_t>(i * 7 % 301) - 1;
  }
  return {"crowded_selected_rows", SelectedRows(Uniform({2100, 3}, 69), rows, 300)};
}

}  // namespace skiff::harness
