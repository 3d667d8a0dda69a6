#include "tests/operators/tensor/row_mask_reference.h"

namespace skiff::harness {

void AddSplitLodTensorCases(CaseList& cases) {
  AddRowMaskCases(cases, [](const Array& rows, const Array& row_mask) {
    return OpCase{.type = "split_lod_tensor",
                  .inputs = {{"X", {rows}}, {"Mask", {row_mask}}},
                  .reference =
                      [](const Arrays& inputs) {
                        const Array& x = inputs.at("X")[0];
                        const Array& mask = inputs.at("Mask")[0];
                        return Arrays{{"OutTrue", {RowsWhere(x, mask, true)}},
                                      {"OutFalse", {RowsWhere(x, mask, false)}}};
                      },
                  .outputs = {{"OutTrue", 1}, {"OutFalse", 1}}};
  });
}

}  // namespace skiff::harness
