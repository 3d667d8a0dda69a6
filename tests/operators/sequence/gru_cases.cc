#include <string>
#include <vector>

#include "tests/operators/sequence/recurrent_reference.h"

namespace skiff::harness {
namespace {

struct Gru {
  bool is_reverse = false;
  bool has_start = false;
  bool has_bias = true;
  bool origin_mode = false;
  std::string gate = "sigmoid";
  std::string candidate = "tanh";
};

Arrays GruReference(const Gru& gru, const Arrays& inputs) {
  const Array& input = inputs.at("Input")[0];
  const Array& weight = inputs.at("Weight")[0];
  const auto size = static_cast<size_t>(weight.shape[0]);
  const Numbers bias = RowOf(inputs, "Bias", 0, 3 * size);
  Array hidden = ZeroRows(input.shape[0], size), batch_hidden = hidden, batch_reset = hidden;
  Array gates = ZeroRows(input.shape[0], 3 * size);
  Numbers h;
  for (const Visit& visit : Visits(input, gru.is_reverse)) {
    if (visit.is_first) h = RowOf(inputs, "H0", visit.sequence, size);
    Numbers g = Times(h, weight, 0, 2 * size, 0, 2 * size), reset = h;
    for (size_t i = 0; i < 2 * size; ++i)
      g[i] = Activated(gru.gate, g[i] + input.values[visit.row * 3 * size + i] + bias[i]);
    for (size_t i = 0; i < size; ++i) reset[i] *= g[size + i];
    const Numbers product = Times(reset, weight, 2 * size * size, size, 0, size);
    for (size_t i = 0; i < size; ++i) {
      const size_t at = 2 * size + i;
      g.push_back(Activated(gru.candidate,
                            product[i] + input.values[visit.row * 3 * size + at] + bias[at]));
      h[i] = gru.origin_mode ? g[i] * h[i] + (1 - g[i]) * g[at] : (1 - g[i]) * h[i] + g[i] * g[at];
    }
    SetRow(&hidden, visit.row, h);
    SetRow(&batch_hidden, visit.batch_row, h);
    SetRow(&batch_reset, visit.batch_row, reset);
    SetRow(&gates, visit.batch_row, g);
  }
  hidden.lod = input.lod;
  return {{"Hidden", {hidden}},
          {"BatchGate", {gates}},
          {"BatchResetHiddenPrev", {batch_reset}},
          {"BatchHidden", {batch_hidden}}};
}

// `input` makes the rows of a width.
template <typename Input>
OpCase GruCase(const std::string& name, const Gru& gru, int64_t size, const Input& input) {
  OpCase op_case;
  op_case.name = name;
  op_case.type = "gru";
  op_case.bfloat16_tolerance = kRecurrentBFloat16;
  const Array x = input(3 * size);
  const auto sequences = static_cast<int64_t>(x.lod.back().size()) - 1;
  op_case.inputs = {{"Input", {x}}, {"Weight", {Uniform({size, 3 * size}, 2, -0.5, 0.5)}}};
  op_case.gradients = {"Input", "Weight"};
  if (gru.has_bias) {
    op_case.inputs["Bias"] = {Uniform({1, 3 * size}, 3)};
    op_case.gradients.push_back("Bias");
  }
  if (gru.has_start) {
    op_case.inputs["H0"] = {Uniform({sequences, size}, 4)};
    op_case.gradients.push_back("H0");
  }
  op_case.attrs = {{"is_reverse", gru.is_reverse},
                   {"origin_mode", gru.origin_mode},
                   {"gate_activation", gru.gate},
                   {"activation", gru.candidate}};
  op_case.reference = [gru](const Arrays& inputs) { return GruReference(gru, inputs); };
  op_case.outputs = {
      {"Hidden", 1}, {"BatchGate", 1}, {"BatchResetHiddenPrev", 1}, {"BatchHidden", 1}};
  op_case.loss_outputs = {"Hidden"};
  return op_case;
}

}  // namespace

void AddGruCases(CaseList& cases) {
  cases.push_back(GruCase("plain", {}, 3, FewSequences));
  cases.push_back(GruCase("reverse", {.is_reverse = true}, 3, FewSequences));
  cases.push_back(GruCase("start", {.is_reverse = true, .has_start = true}, 3, FewSequences));
  cases.push_back(
      GruCase("origin_mode", {.has_start = true, .origin_mode = true}, 3, FewSequences));
  cases.push_back(GruCase("no_bias", {.has_bias = false}, 3, FewSequences));
  cases.push_back(GruCase("activations",
                          {.has_start = true, .gate = "tanh", .candidate = "identity"}, 3,
                          FewSequences));
  cases.push_back(GruCase("relu", {.has_start = true, .candidate = "relu"}, 3, FewSequences));
  cases.push_back(GruCase("one_row_each", {.has_start = true}, 2, OneRowEach));
  cases.push_back(GruCase("equal", {}, 5, EqualSequences));
  cases.push_back(GruCase("empty_sequences", {.has_start = true}, 2, EmptySequences));
  cases.push_back(GruCase("two_levels", {}, 2, SequencesOfTwoLevels));
  cases.push_back(GruCase("no_rows", {.has_start = true}, 2, SequencesWithoutRows));
  cases.push_back(GruCase("unequal", {}, 2, UnequalSequences));
  // 19 cells: more columns than a block of sums in registers has.
  cases.push_back(GruCase("wide", {}, 19, TwentySequences));
  cases.push_back(GruCase("many_sequences", {.has_start = true}, 2, ManySequences));
  cases.push_back(GruCase("benchmark", {}, 256, SentencesOfABatch));
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
