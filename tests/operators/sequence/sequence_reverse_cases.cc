#include <algorithm>

#include "tests/operators/sequence/sequences.h"

namespace skiff::harness {
namespace {

Arrays SequenceReverseReference(const Arrays& inputs) {
  const Array& x = inputs.at("X")[0];
  std::vector<Rows> sequences = SequencesOf(x);
  for (Rows& rows : sequences) std::reverse(rows.begin(), rows.end());
  return {{"Y", {Joined(sequences, x)}}};
}

OpCase SequenceReverseCase(Array x) {
  return {.name = "",
          .type = "sequence_reverse",
          .inputs = {{"X", {std::move(x)}}},
          .attrs = {},
          .reference = SequenceReverseReference,
          .outputs = {{"Y", 1}},
          .gradients = {"X"}};
}

}  // namespace

void AddSequenceReverseCases(CaseList& cases) {
  AddCasesOfLengths(cases, "", [](const Lengths& lengths) {
    return SequenceReverseCase(Ragged(Uniform({lengths.rows(), 3}, 1), lengths.each));
  });
  cases.push_back(SequenceReverseCase(Ragged(Uniform({5, 2, 2}, 2), {2, 3})));
  cases.back().name = "images";
  cases.push_back(SequenceReverseCase(Ragged(Integers({5}, 3, -9, 9), {2, 3})));
  cases.back().name = "int64";
  cases.back().gradients.clear();
  // More columns than a block of threads takes at once.
  cases.push_back(SequenceReverseCase(Ragged(Uniform({3, 1030}, 4), {2, 1})));
  cases.back().name = "wide";
  cases.back().gradients.clear();
}

}  // namespace skiff::harness
