#include "tests/operators/tensor/row_mask_reference.h"

namespace skiff::harness {

void AddSplitLodTensorCases(CaseList& cases) {
  const auto add = [&](const std::string& name, Array x, const std::vector<double>& mask) {
    OpCase op_case{.name = name,
                   .type = "split_lod_tensor",
                   .inputs = {{"X", {std::move(x)}}, {"Mask", {RowMask(mask)}}},
                   .reference =
                       [](const Arrays& inputs) {
                         const Array& x = inputs.at("X")[0];
                         const Array& mask = inputs.at("Mask")[0];
                         return Arrays{{"OutTrue", {RowsWhere(x, mask, true)}},
                                       {"OutFalse", {RowsWhere(x, mask, false)}}};
                       },
                   .outputs = {{"OutTrue", 1}, {"OutFalse", 1}}};
    op_case.unchecked_gradient = "rows that depend on data: IfElse in loop_test.cc";
    cases.push_back(std::move(op_case));
  };
  add("some_rows", Uniform({4, 3}, 1), {1, 0, 0, 1});
  add("all_rows", Uniform({3, 2, 2}, 2), {1, 1, 1});
  add("no_rows", Uniform({2, 3}, 3), {0, 0});
}

}  // namespace skiff::harness
