#include "tests/operators/tensor/row_mask_reference.h"

namespace skiff::harness {

void AddMergeLodTensorCases(CaseList& cases) {
  AddRowMaskCases(cases, [](const Array& merged, const Array& mask) {
    return OpCase{.type = "merge_lod_tensor",
                  .inputs = {{"X", {mask}},
                             {"Mask", {mask}},
                             {"InTrue", {RowsWhere(merged, mask, true)}},
                             {"InFalse", {RowsWhere(merged, mask, false)}}},
                  .reference =
                      [merged](const Arrays&) {
                        return Arrays{{"Out", {merged}}};
                      },
                  .outputs = {{"Out", 1}}};
  });
}

}  // namespace skiff::harness
