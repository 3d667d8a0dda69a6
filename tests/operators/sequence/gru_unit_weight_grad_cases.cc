#include <string>

#include "tests/operators/sequence/recurrent_reference.h"

namespace skiff::harness {
namespace {

Arrays GruUnitWeightGradReference(const Arrays& inputs) {
  const Array& gates = inputs.at("Input@GRAD")[0];
  const auto size = static_cast<size_t>(inputs.at("Weight")[0].shape[0]);
  Array weight = ZeroRows(static_cast<int64_t>(size), 3 * size);
  Array bias = ZeroRows(1, 3 * size);
  for (size_t row = 0; row < static_cast<size_t>(gates.shape[0]); ++row) {
    const Numbers before = RowOf(inputs, "HiddenPrev", row, size);
    const Numbers reset = RowOf(inputs, "ResetHiddenPrev", row, size);
    const Numbers g = RowOf(inputs, "Input@GRAD", row, 3 * size);
    for (size_t i = 0; i < size; ++i) {
      for (size_t k = 0; k < 2 * size; ++k) weight.values[i * 2 * size + k] += before[i] * g[k];
      for (size_t k = 0; k < size; ++k) {
        weight.values[2 * size * size + i * size + k] += reset[i] * g[2 * size + k];
      }
    }
    for (size_t k = 0; k < 3 * size; ++k) bias.values[k] += g[k];
  }
  return {{"Weight@GRAD", {weight}}, {"Bias@GRAD", {bias}}};
}

OpCase GruUnitWeightGradCase(const std::string& name, int64_t rows, int64_t size) {
  OpCase op_case;
  op_case.name = name;
  op_case.type = "gru_unit_weight_grad";
  op_case.inputs = {{"HiddenPrev", {Uniform({rows, size}, 1)}},
                    {"ResetHiddenPrev", {Uniform({rows, size}, 2)}},
                    {"Input@GRAD", {Uniform({rows, 3 * size}, 3)}},
                    {"Weight", {Uniform({size, 3 * size}, 4)}}};
  op_case.reference = GruUnitWeightGradReference;
  op_case.outputs = {{"Weight@GRAD", 1}, {"Bias@GRAD", 1}};
  return op_case;
}

}  // namespace

void AddGruUnitWeightGradCases(CaseList& cases) {
  cases.push_back(GruUnitWeightGradCase("plain", 4, 3));
  cases.push_back(GruUnitWeightGradCase("one_row", 1, 5));
  cases.push_back(GruUnitWeightGradCase("no_rows", 0, 2));
  cases.push_back(GruUnitWeightGradCase("wide", 33, 19));
}

}  // namespace skiff::harness
