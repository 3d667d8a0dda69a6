#include <cmath>
#include <string>

#include "tests/operators/sequence/recurrent_reference.h"

namespace skiff::harness {
namespace {

Arrays LstmUnitReference(double forget_bias, const Arrays& inputs) {
  const auto rows = static_cast<size_t>(inputs.at("C_prev")[0].shape[0]);
  const auto size = static_cast<size_t>(inputs.at("C_prev")[0].shape[1]);
  Array cell = inputs.at("C_prev")[0];
  Array hidden = cell;
  for (size_t row = 0; row < rows; ++row) {
    const Numbers x = RowOf(inputs, "X", row, 4 * size);
    for (size_t i = 0; i < size; ++i) {
      double& c = cell.values[row * size + i];
      c = Activated("sigmoid", x[size + i] + forget_bias) * c +
          Activated("sigmoid", x[i]) * std::tanh(x[3 * size + i]);
      hidden.values[row * size + i] = Activated("sigmoid", x[2 * size + i]) * std::tanh(c);
    }
  }
  return {{"C", {cell}}, {"H", {hidden}}};
}

OpCase LstmUnitCase(const std::string& name, float forget_bias, int64_t rows, int64_t size) {
  OpCase op_case;
  op_case.name = name;
  op_case.type = "lstm_unit";
  op_case.inputs = {{"X", {Uniform({rows, 4 * size}, 1, -3, 3)}},
                    {"C_prev", {Uniform({rows, size}, 2)}}};
  op_case.attrs = {{"forget_bias", forget_bias}};
  op_case.reference = [forget_bias](const Arrays& inputs) {
    return LstmUnitReference(static_cast<double>(forget_bias), inputs);
  };
  op_case.outputs = {{"C", 1}, {"H", 1}};
  op_case.gradients = {"X", "C_prev"};
  return op_case;
}

}  // namespace

void AddLstmUnitCases(CaseList& cases) {
  cases.push_back(LstmUnitCase("plain", 0, 4, 3));
  cases.push_back(LstmUnitCase("forget_bias", 1.5f, 3, 11));
  cases.push_back(LstmUnitCase("hidden_alone", 0, 2, 5));
  cases.back().loss_outputs = {"H"};
  cases.push_back(LstmUnitCase("no_rows", 0, 0, 2));
  cases.push_back(LstmUnitCase("benchmark", 0, 512, 256));
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
