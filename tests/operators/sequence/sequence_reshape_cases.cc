#include "tests/operators/sequence/sequences.h"

namespace skiff::harness {
namespace {

Arrays SequenceReshapeReference(const Arrays& inputs, int64_t width) {
  Array out = inputs.at("X")[0];
  for (uint64_t& offset : out.lod[0]) {
    offset = offset * static_cast<uint64_t>(out.shape[1]) / static_cast<uint64_t>(width);
  }
  out.shape = {static_cast<int64_t>(out.lod[0].back()), width};
  return {{"Out", {out}}};
}

OpCase SequenceReshapeCase(Array x, int32_t width) {
  return {
      .name = "",
      .type = "sequence_reshape",
      .inputs = {{"X", {std::move(x)}}},
      .attrs = {{"new_dim", width}},
      .reference = [=](const Arrays& inputs) { return SequenceReshapeReference(inputs, width); },
      .outputs = {{"Out", 1}},
      .gradients = {"X"}};
}

}  // namespace

void AddSequenceReshapeCases(CaseList& cases) {
  AddCasesOfLengths(cases, "narrower_", [](const Lengths& lengths) {
    return SequenceReshapeCase(Ragged(Uniform({lengths.rows(), 4}, 1), lengths.each), 2);
  });
  cases.push_back(SequenceReshapeCase(Ragged(Uniform({8, 3}, 2), {2, 0, 6}), 6));
  cases.back().name = "wider";
  cases.push_back(SequenceReshapeCase(Ragged(Uniform({5, 3}, 3), {2, 3}), 3));
  cases.back().name = "same";
  cases.push_back(SequenceReshapeCase(Ragged(Integers({4, 2}, 4, -9, 9), {1, 3}), 1));
  cases.back().name = "int64";
  cases.back().gradients.clear();
}

}  // namespace skiff::harness
