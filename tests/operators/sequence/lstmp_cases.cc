#include <algorithm>
#include <string>
#include <vector>

#include "tests/operators/sequence/recurrent_reference.h"

namespace skiff::harness {
namespace {

struct Lstmp {
  bool use_peepholes = false;
  bool is_reverse = false;
  bool has_start = false;
  float cell_clip = 0;
  float proj_clip = 0;
  std::string gate = "sigmoid";
  std::string cell = "tanh";
  std::string candidate = "tanh";
  std::string projection = "tanh";
};

double Clipped(double x, float limit) {
  return limit > 0 ? std::clamp<double>(x, -limit, limit) : x;
}

Arrays LstmpReference(const Lstmp& lstmp, const Arrays& inputs) {
  const Array& input = inputs.at("Input")[0];
  const Array& weight = inputs.at("Weight")[0];
  const Array& proj_weight = inputs.at("ProjWeight")[0];
  const std::vector<double>& bias = inputs.at("Bias")[0].values;
  const auto size = static_cast<size_t>(proj_weight.shape[0]);
  const auto width = static_cast<size_t>(proj_weight.shape[1]);
  const auto peephole = [&](size_t k, size_t i) {
    return lstmp.use_peepholes ? bias[(4 + k) * size + i] : 0.0;
  };
  Array projection = ZeroRows(input.shape[0], width);
  Array cell = ZeroRows(input.shape[0], size), pre_act = cell, hidden = cell;
  Array gates = ZeroRows(input.shape[0], 4 * size);
  Numbers r, c;
  for (const Visit& visit : Visits(input, lstmp.is_reverse)) {
    if (visit.is_first) {
      r = RowOf(inputs, "H0", visit.sequence, width);
      c = RowOf(inputs, "C0", visit.sequence, size);
    }
    Numbers g = Times(r, weight, 0, 4 * size, 0, 4 * size);
    Numbers activated(size), h(size);
    for (size_t i = 0; i < 4 * size; ++i) g[i] += input.values[visit.row * 4 * size + i] + bias[i];
    for (size_t i = 0; i < size; ++i) {
      g[i] = Activated(lstmp.candidate, g[i]);
      g[size + i] = Activated(lstmp.gate, g[size + i] + peephole(0, i) * c[i]);
      g[2 * size + i] = Activated(lstmp.gate, g[2 * size + i] + peephole(1, i) * c[i]);
      c[i] = Clipped(g[size + i] * g[i] + g[2 * size + i] * c[i], lstmp.cell_clip);
      g[3 * size + i] = Activated(lstmp.gate, g[3 * size + i] + peephole(2, i) * c[i]);
      activated[i] = Activated(lstmp.cell, c[i]);
      h[i] = g[3 * size + i] * activated[i];
    }
    r = Times(h, proj_weight, 0, width, 0, width);
    for (double& value : r) value = Clipped(Activated(lstmp.projection, value), lstmp.proj_clip);
    SetRow(&projection, visit.row, r);
    SetRow(&cell, visit.row, c);
    SetRow(&gates, visit.batch_row, g);
    SetRow(&pre_act, visit.batch_row, activated);
    SetRow(&hidden, visit.batch_row, h);
  }
  projection.lod = cell.lod = input.lod;
  return {{"Projection", {projection}},
          {"Cell", {cell}},
          {"BatchGate", {gates}},
          {"BatchCellPreAct", {pre_act}},
          {"BatchHidden", {hidden}}};
}

// `input` makes the rows of a width.
template <typename Input>
OpCase LstmpCase(const std::string& name, const Lstmp& lstmp, int64_t size, int64_t width,
                 const Input& input) {
  OpCase op_case;
  op_case.name = name;
  op_case.type = "lstmp";
  op_case.bfloat16_tolerance = kRecurrentBFloat16;
  const Array x = input(4 * size);
  const auto sequences = static_cast<int64_t>(x.lod.back().size()) - 1;
  op_case.inputs = {{"Input", {x}},
                    {"Weight", {Uniform({width, 4 * size}, 2, -0.5, 0.5)}},
                    {"ProjWeight", {Uniform({size, width}, 6, -0.9, 0.9)}},
                    {"Bias", {Uniform({1, (lstmp.use_peepholes ? 7 : 4) * size}, 3)}}};
  op_case.gradients = {"Input", "Weight", "ProjWeight", "Bias"};
  if (lstmp.has_start) {
    op_case.inputs["H0"] = {Uniform({sequences, width}, 4)};
    op_case.inputs["C0"] = {Uniform({sequences, size}, 5)};
    op_case.gradients.insert(op_case.gradients.end(), {"H0", "C0"});
  }
  op_case.attrs = {{"use_peepholes", lstmp.use_peepholes},
                   {"is_reverse", lstmp.is_reverse},
                   {"cell_clip", lstmp.cell_clip},
                   {"proj_clip", lstmp.proj_clip},
                   {"gate_activation", lstmp.gate},
                   {"cell_activation", lstmp.cell},
                   {"candidate_activation", lstmp.candidate},
                   {"proj_activation", lstmp.projection}};
  op_case.reference = [lstmp](const Arrays& inputs) { return LstmpReference(lstmp, inputs); };
  op_case.outputs = {
      {"Projection", 1}, {"Cell", 1}, {"BatchGate", 1}, {"BatchCellPreAct", 1}, {"BatchHidden", 1}};
  op_case.loss_outputs = {"Projection", "Cell"};
  return op_case;
}

}  // namespace

void AddLstmpCases(CaseList& cases) {
  cases.push_back(LstmpCase("plain", {}, 3, 2, FewSequences));
  cases.push_back(LstmpCase("reverse", {.is_reverse = true}, 3, 2, FewSequences));
  cases.push_back(LstmpCase("peepholes", {.use_peepholes = true}, 3, 2, FewSequences));
  cases.push_back(LstmpCase("start", {.use_peepholes = true, .is_reverse = true, .has_start = true},
                            3, 2, FewSequences));
  cases.push_back(LstmpCase("projection_alone", {.use_peepholes = true, .has_start = true}, 3, 4,
                            FewSequences));
  cases.back().loss_outputs = {"Projection"};
  cases.push_back(LstmpCase("cell_clip",
                            {.use_peepholes = true, .has_start = true, .cell_clip = 0.3f}, 3, 2,
                            FewSequences));
  cases.push_back(
      LstmpCase("proj_clip", {.has_start = true, .proj_clip = 0.15f}, 3, 2, FewSequences));
  cases.push_back(LstmpCase("both_clips_of_identities",
                            {.cell_clip = 0.4f,
                             .proj_clip = 0.1f,
                             .cell = "identity",
                             .candidate = "identity",
                             .projection = "identity"},
                            3, 2, FewSequences));
  cases.push_back(LstmpCase("activations",
                            {.use_peepholes = true,
                             .has_start = true,
                             .gate = "tanh",
                             .cell = "identity",
                             .candidate = "sigmoid",
                             .projection = "sigmoid"},
                            3, 2, FewSequences));
  cases.push_back(LstmpCase("relu", {.cell = "sigmoid", .projection = "relu"}, 3, 2, FewSequences));
  cases.push_back(LstmpCase("first_programs", {}, 3, 2, FewSequences));
  cases.back().outputs.push_back({"OrderedP0", 1});
  cases.push_back(LstmpCase("one_row_each", {.has_start = true}, 2, 1, OneRowEach));
  cases.push_back(LstmpCase("equal", {.use_peepholes = true}, 5, 3, EqualSequences));
  cases.push_back(LstmpCase("empty_sequences", {.has_start = true}, 2, 3, EmptySequences));
  cases.push_back(LstmpCase("two_levels", {}, 2, 2, SequencesOfTwoLevels));
  cases.push_back(
      LstmpCase("no_cells", {.has_start = true, .projection = "sigmoid"}, 0, 2, FewSequences));
  cases.push_back(
      LstmpCase("no_projection", {.use_peepholes = true, .has_start = true}, 2, 0, FewSequences));
  cases.push_back(
      LstmpCase("no_rows", {.use_peepholes = true, .has_start = true}, 2, 2, SequencesWithoutRows));
  cases.push_back(LstmpCase("unequal", {.use_peepholes = true}, 2, 2, UnequalSequences));
  // 19 cells and 18 numbers of a projection: more columns than a block of sums in registers has.
  cases.push_back(LstmpCase("wide", {.use_peepholes = true}, 19, 18, TwentySequences));
  cases.push_back(LstmpCase("many_sequences", {.has_start = true}, 2, 3, ManySequences));
  cases.push_back(LstmpCase("benchmark", {}, 512, 128, [](int64_t width) {
    std::vector<int64_t> lengths;
    int64_t rows = 0;
    for (int64_t i = 0; i < 32; ++i) rows += lengths.emplace_back(8 + i * 37 % 25);
    return Ragged(Uniform({rows, width}, 1), lengths);
  }));
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
