#include <algorithm>
#include <cmath>

#include "tests/operators/sequence/sequences.h"

namespace skiff::harness {
namespace {

Arrays SequenceSoftmaxReference(const Arrays& inputs) {
  const Array& x = inputs.at("X")[0];
  std::vector<Rows> sequences = SequencesOf(x);
  for (Rows& rows : sequences) {
    double largest = -1e300;
    for (const Row& row : rows) largest = std::max(largest, row[0]);
    double sum = 0;
    for (const Row& row : rows) sum += std::exp(row[0] - largest);
    for (Row& row : rows) row[0] = std::exp(row[0] - largest) / sum;
  }
  Array out = Joined(sequences, x);
  out.lod = x.lod;
  return {{"Out", {out}}};
}

OpCase SequenceSoftmaxCase(Array x) {
  return {.name = "",
          .type = "sequence_softmax",
          .inputs = {{"X", {std::move(x)}}},
          .attrs = {},
          .reference = SequenceSoftmaxReference,
          .outputs = {{"Out", 1}},
          .gradients = {"X"}};
}

}  // namespace

void AddSequenceSoftmaxCases(CaseList& cases) {
  AddCasesOfLengths(cases, "", [](const Lengths& lengths) {
    return SequenceSoftmaxCase(Ragged(Uniform({lengths.rows(), 1}, 1, -5, 5), lengths.each));
  });
  cases.push_back(SequenceSoftmaxCase(Ragged(Uniform({7}, 2), {3, 4})));
  cases.back().name = "vector";
  cases.push_back(SequenceSoftmaxCase(Ragged(Uniform({7, 1}, 3), {1, 0, 2}, {3, 3, 1})));
  cases.back().name = "two_levels";
  // Exponentials of the numbers themselves would overflow.
  cases.push_back(SequenceSoftmaxCase(Ragged(Values({4, 1}, {1000, 1001, -2000, 1000}), {2, 2})));
  cases.back().name = "large_numbers";
  // More offsets than a launch takes to a device.
  cases.push_back(SequenceSoftmaxCase(Ragged(Uniform({350, 1}, 4), std::vector<int64_t>(350, 1))));
  cases.back().name = "many_sequences";
  cases.back().gradients.clear();
}

}  // namespace skiff::harness
