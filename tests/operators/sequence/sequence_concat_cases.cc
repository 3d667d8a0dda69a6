#include "tests/operators/sequence/sequences.h"

namespace skiff::harness {
namespace {

Arrays SequenceConcatReference(const Arrays& inputs) {
  const std::vector<Array>& xs = inputs.at("X");
  std::vector<Rows> joined = SequencesOf(xs[0]);
  for (size_t i = 1; i < xs.size(); ++i) {
    const std::vector<Rows> sequences = SequencesOf(xs[i]);
    for (size_t k = 0; k < joined.size(); ++k)
      joined[k].insert(joined[k].end(), sequences[k].begin(), sequences[k].end());
  }
  return {{"Out", {Joined(joined, xs[0])}}};
}

OpCase SequenceConcatCase(const std::string& name, std::vector<Array> xs) {
  return {.name = name,
          .type = "sequence_concat",
          .inputs = {{"X", std::move(xs)}},
          .reference = SequenceConcatReference,
          .outputs = {{"Out", 1}},
          .gradients = {"X"}};
}

}  // namespace

void AddSequenceConcatCases(CaseList& cases) {
  AddCasesOfLengths(cases, "", [](const Lengths& lengths) {
    const Lengths reversed{"", {lengths.each.rbegin(), lengths.each.rend()}};
    return SequenceConcatCase("", {Ragged(Uniform({lengths.rows(), 3}, 1), lengths.each),
                                   Ragged(Uniform({reversed.rows(), 3}, 2), reversed.each)});
  });
  cases.push_back(SequenceConcatCase(
      "three", {Ragged(Uniform({4, 2}, 3), {1, 0, 3}), Ragged(Uniform({2, 2}, 4), {0, 0, 2}),
                Ragged(Uniform({5, 2}, 5), {2, 2, 1})}));
  cases.push_back(SequenceConcatCase("one", {Ragged(Uniform({4, 2}, 6), {1, 3})}));
  cases.push_back(SequenceConcatCase(
      "one_is_empty", {Ragged(Uniform({4, 2}, 7), {1, 3}), Ragged(Uniform({0, 2}, 8), {0, 0})}));
  cases.push_back(SequenceConcatCase(
      "images", {Ragged(Uniform({3, 2, 2}, 9), {1, 2}), Ragged(Uniform({2, 2, 2}, 10), {2, 0})}));
  cases.push_back(SequenceConcatCase(
      "vectors", {Ragged(Uniform({3}, 11), {1, 2}), Ragged(Uniform({2}, 12), {1, 1})}));
  const std::vector<int64_t> lengths(40, 5);
  cases.push_back(SequenceConcatCase(
      "many", {Ragged(Uniform({200, 65}, 13), lengths), Ragged(Uniform({200, 65}, 14), lengths)}));
  cases.push_back(SequenceConcatCase("int64", {Ragged(Integers({3, 1}, 15, -9, 9), {1, 2}),
                                               Ragged(Integers({3, 1}, 16, -9, 9), {2, 1})}));
  cases.back().gradients.clear();
}

}  // namespace skiff::harness
