#include <string>
#include <vector>

#include "tests/operators/sequence/recurrent_reference.h"

namespace skiff::harness {
namespace {

const char* const kActivations[] = {"identity", "sigmoid", "tanh", "relu"};

struct GruUnit {
  bool has_bias = true;
  bool origin_mode = false;
  int gate = 1;
  int candidate = 2;
};

Arrays GruUnitReference(const GruUnit& gru, const Arrays& inputs) {
  const Array& input = inputs.at("Input")[0];
  const Array& weight = inputs.at("Weight")[0];
  const auto size = static_cast<size_t>(weight.shape[0]);
  const Numbers bias = RowOf(inputs, "Bias", 0, 3 * size);
  Array hidden = ZeroRows(input.shape[0], size), reset_hidden = hidden;
  Array gates = ZeroRows(input.shape[0], 3 * size);
  for (size_t row = 0; row < static_cast<size_t>(input.shape[0]); ++row) {
    Numbers h = RowOf(inputs, "HiddenPrev", row, size), g = RowOf(inputs, "Input", row, 3 * size);
    const Numbers product = Times(h, weight, 0, 2 * size, 0, 2 * size);
    Numbers reset = h;
    for (size_t i = 0; i < 2 * size; ++i)
      g[i] = Activated(kActivations[gru.gate], g[i] + bias[i] + product[i]);
    for (size_t i = 0; i < size; ++i) reset[i] *= g[size + i];
    const Numbers candidate = Times(reset, weight, 2 * size * size, size, 0, size);
    for (size_t i = 0; i < size; ++i) {
      double& c = g[2 * size + i];
      c = Activated(kActivations[gru.candidate], c + bias[2 * size + i] + candidate[i]);
      h[i] = gru.origin_mode ? g[i] * h[i] + (1 - g[i]) * c : (1 - g[i]) * h[i] + g[i] * c;
    }
    SetRow(&hidden, row, h);
    SetRow(&reset_hidden, row, reset);
    SetRow(&gates, row, g);
  }
  return {{"Hidden", {hidden}}, {"Gate", {gates}}, {"ResetHiddenPrev", {reset_hidden}}};
}

OpCase GruUnitCase(const std::string& name, const GruUnit& gru, int64_t rows, int64_t size) {
  OpCase op_case;
  op_case.name = name;
  op_case.type = "gru_unit";
  op_case.inputs = {{"Input", {Uniform({rows, 3 * size}, 1)}},
                    {"HiddenPrev", {Uniform({rows, size}, 2)}},
                    {"Weight", {Uniform({size, 3 * size}, 3, -0.5, 0.5)}}};
  op_case.gradients = {"Input", "HiddenPrev", "Weight"};
  if (gru.has_bias) {
    op_case.inputs["Bias"] = {Uniform({1, 3 * size}, 4)};
    op_case.gradients.push_back("Bias");
  }
  op_case.attrs = {{"origin_mode", gru.origin_mode},
                   {"gate_activation", gru.gate},
                   {"activation", gru.candidate}};
  op_case.reference = [gru](const Arrays& inputs) { return GruUnitReference(gru, inputs); };
  op_case.outputs = {{"Hidden", 1}, {"Gate", 1}, {"ResetHiddenPrev", 1}};
  return op_case;
}

}  // namespace

void AddGruUnitCases(CaseList& cases) {
  cases.push_back(GruUnitCase("plain", {}, 4, 3));
  cases.push_back(GruUnitCase("no_bias", {.has_bias = false}, 4, 3));
  cases.push_back(GruUnitCase("origin_mode", {.origin_mode = true}, 4, 3));
  cases.push_back(GruUnitCase("activations", {.gate = 2, .candidate = 0}, 4, 3));
  cases.push_back(GruUnitCase("relu", {.candidate = 3}, 4, 3));
  cases.push_back(GruUnitCase("one_row", {}, 1, 5));
  cases.push_back(GruUnitCase("no_rows", {}, 0, 2));
  cases.push_back(GruUnitCase("wide", {}, 33, 19));
  cases.push_back(GruUnitCase("benchmark", {}, 128, 256));
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
