#include <string>
#include <vector>

#include "tests/operators/sequence/recurrent_reference.h"

namespace skiff::harness {
namespace {

struct Lstm {
  bool use_peepholes = false;
  bool is_reverse = false;
  bool has_start = false;
  std::string gate = "sigmoid";
  std::string cell = "tanh";
  std::string candidate = "tanh";
};

Arrays LstmReference(const Lstm& lstm, const Arrays& inputs) {
  const Array& input = inputs.at("Input")[0];
  const Array& weight = inputs.at("Weight")[0];
  const std::vector<double>& bias = inputs.at("Bias")[0].values;
  const auto size = static_cast<size_t>(weight.shape[0]);
  const auto peephole = [&](size_t k, size_t i) {
    return lstm.use_peepholes ? bias[(4 + k) * size + i] : 0.0;
  };
  Array hidden = ZeroRows(input.shape[0], size), cell = hidden, pre_act = hidden;
  Array gates = ZeroRows(input.shape[0], 4 * size);
  Numbers h, c;
  for (const Visit& visit : Visits(input, lstm.is_reverse)) {
    if (visit.is_first) {
      h = RowOf(inputs, "H0", visit.sequence, size);
      c = RowOf(inputs, "C0", visit.sequence, size);
    }
    Numbers g = Times(h, weight, 0, 4 * size, 0, 4 * size);
    Numbers activated(size);
    for (size_t i = 0; i < 4 * size; ++i) g[i] += input.values[visit.row * 4 * size + i] + bias[i];
    for (size_t i = 0; i < size; ++i) {
      g[i] = Activated(lstm.candidate, g[i]);
      g[size + i] = Activated(lstm.gate, g[size + i] + peephole(0, i) * c[i]);
      g[2 * size + i] = Activated(lstm.gate, g[2 * size + i] + peephole(1, i) * c[i]);
      c[i] = g[size + i] * g[i] + g[2 * size + i] * c[i];
      g[3 * size + i] = Activated(lstm.gate, g[3 * size + i] + peephole(2, i) * c[i]);
      activated[i] = Activated(lstm.cell, c[i]);
      h[i] = g[3 * size + i] * activated[i];
    }
    SetRow(&hidden, visit.row, h);
    SetRow(&cell, visit.row, c);
    SetRow(&gates, visit.batch_row, g);
    SetRow(&pre_act, visit.batch_row, activated);
  }
  hidden.lod = cell.lod = input.lod;
  return {{"Hidden", {hidden}},
          {"Cell", {cell}},
          {"BatchGate", {gates}},
          {"BatchCellPreAct", {pre_act}}};
}

// `input` makes the rows of a width.
template <typename Input>
OpCase LstmCase(const std::string& name, const Lstm& lstm, int64_t size, const Input& input) {
  OpCase op_case;
  op_case.name = name;
  op_case.type = "lstm";
  op_case.bfloat16_tolerance = kRecurrentBFloat16;
  const Array x = input(4 * size);
  const auto sequences = static_cast<int64_t>(x.lod.back().size()) - 1;
  op_case.inputs = {{"Input", {x}},
                    {"Weight", {Uniform({size, 4 * size}, 2, -0.5, 0.5)}},
                    {"Bias", {Uniform({1, (lstm.use_peepholes ? 7 : 4) * size}, 3)}}};
  op_case.gradients = {"Input", "Weight", "Bias"};
  if (lstm.has_start) {
    op_case.inputs["H0"] = {Uniform({sequences, size}, 4)};
    op_case.inputs["C0"] = {Uniform({sequences, size}, 5)};
    op_case.gradients.insert(op_case.gradients.end(), {"H0", "C0"});
  }
  op_case.attrs = {{"use_peepholes", lstm.use_peepholes},
                   {"is_reverse", lstm.is_reverse},
                   {"gate_activation", lstm.gate},
                   {"cell_activation", lstm.cell},
                   {"candidate_activation", lstm.candidate}};
  op_case.reference = [lstm](const Arrays& inputs) { return LstmReference(lstm, inputs); };
  op_case.outputs = {{"Hidden", 1}, {"Cell", 1}, {"BatchGate", 1}, {"BatchCellPreAct", 1}};
  op_case.loss_outputs = {"Hidden", "Cell"};
  return op_case;
}

}  // namespace

void AddLstmCases(CaseList& cases) {
  cases.push_back(LstmCase("plain", {}, 3, FewSequences));
  cases.push_back(LstmCase("reverse", {.is_reverse = true}, 3, FewSequences));
  cases.push_back(LstmCase("peepholes", {.use_peepholes = true}, 3, FewSequences));
  cases.push_back(LstmCase("start", {.use_peepholes = true, .is_reverse = true, .has_start = true},
                           3, FewSequences));
  cases.push_back(
      LstmCase("hidden_alone", {.use_peepholes = true, .has_start = true}, 3, FewSequences));
  cases.back().loss_outputs = {"Hidden"};
  cases.push_back(LstmCase("activations",
                           {.use_peepholes = true,
                            .has_start = true,
                            .gate = "tanh",
                            .cell = "identity",
                            .candidate = "sigmoid"},
                           3, FewSequences));
  cases.push_back(LstmCase("relu", {.cell = "sigmoid", .candidate = "relu"}, 3, FewSequences));
  cases.push_back(LstmCase("one_row_each", {.has_start = true}, 2, OneRowEach));
  cases.push_back(LstmCase("equal", {.use_peepholes = true}, 5, EqualSequences));
  cases.push_back(LstmCase("empty_sequences", {.has_start = true}, 2, EmptySequences));
  cases.push_back(LstmCase("two_levels", {}, 2, SequencesOfTwoLevels));
  cases.push_back(
      LstmCase("no_rows", {.use_peepholes = true, .has_start = true}, 2, SequencesWithoutRows));
  cases.push_back(LstmCase("unequal", {.use_peepholes = true}, 2, UnequalSequences));
  // 19 cells: more columns than a block of sums in registers has.
  cases.push_back(LstmCase("wide", {.use_peepholes = true}, 19, TwentySequences));
  cases.push_back(LstmCase("many_sequences", {.has_start = true}, 2, ManySequences));
  cases.push_back(LstmCase("benchmark", {}, 256, SentencesOfABatch));
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
