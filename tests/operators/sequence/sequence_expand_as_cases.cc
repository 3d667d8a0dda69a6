#include "tests/operators/sequence/sequences.h"

namespace skiff::harness {
namespace {

Arrays SequenceExpandAsReference(const Arrays& inputs) {
  const Array& x = inputs.at("X")[0];
  std::vector<Rows> sequences = SequencesOf(inputs.at("Y")[0]);
  const Rows rows = RowsOf(x);
  for (size_t i = 0; i < sequences.size(); ++i) sequences[i].assign(sequences[i].size(), rows[i]);
  return {{"Out", {Joined(sequences, x)}}};
}

OpCase SequenceExpandAsCase(Array x, Array y) {
  return {.name = "",
          .type = "sequence_expand_as",
          .inputs = {{"X", {std::move(x)}}, {"Y", {std::move(y)}}},
          .reference = SequenceExpandAsReference,
          .outputs = {{"Out", 1}},
          .gradients = {"X"}};
}

}  // namespace

void AddSequenceExpandAsCases(CaseList& cases) {
  AddCasesOfLengths(cases, "", [](const Lengths& lengths) {
    const auto count = static_cast<int64_t>(lengths.each.size());
    return SequenceExpandAsCase(Uniform({count, 3}, 1),
                                Ragged(Uniform({lengths.rows(), 2}, 2), lengths.each));
  });
  const auto add = [&](const std::string& name, OpCase made) {
    cases.push_back(std::move(made));
    cases.back().name = name;
  };
  const Array y = Ragged(Uniform({4, 2}, 3), {1, 0, 3});
  add("images", SequenceExpandAsCase(Uniform({3, 2, 2}, 4), y));
  add("vector", SequenceExpandAsCase(Uniform({3}, 5), y));
  add("ragged_x", SequenceExpandAsCase(Ragged(Uniform({3, 2}, 6), {2, 1}), y));
  add("wide", SequenceExpandAsCase(Uniform({3, 9001}, 7), y));
  add("int32", SequenceExpandAsCase(Integers({3, 2}, 8, -9, 9, DType::kInt32), y));
  cases.back().gradients.clear();
}

}  // namespace skiff::harness
