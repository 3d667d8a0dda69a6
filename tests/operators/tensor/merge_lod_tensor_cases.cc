#include "tests/operators/tensor/row_mask_reference.h"

namespace skiff::harness {

void AddMergeLodTensorCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& merged,
                       const std::vector<double>& values) {
    const Array mask = RowMask(values);
    OpCase op_case{.name = name,
                   .type = "merge_lod_tensor",
                   .inputs = {{"X", {mask}},
                              {"Mask", {mask}},
                              {"InTrue", {RowsWhere(merged, mask, true)}},
                              {"InFalse", {RowsWhere(merged, mask, false)}}},
                   .reference =
                       [merged](const Arrays&) {
                         return Arrays{{"Out", {merged}}};
                       },
                   .outputs = {{"Out", 1}}};
    op_case.unchecked_gradient = "rows that depend on data: IfElse in loop_test.cc";
    cases.push_back(std::move(op_case));
  };
  add("some_rows", Uniform({4, 3}, 1), {1, 0, 0, 1});
  add("all_rows", Uniform({3, 2, 2}, 2), {1, 1, 1});
  add("no_rows", Uniform({2, 3}, 3), {0, 0});
}

}  // namespace skiff::harness
