#include "tests/operators/sequence/sequences.h"

namespace skiff::harness {
namespace {

Arrays SequenceScatterReference(const Arrays& inputs) {
  Array out = inputs.at("X")[0];
  out.lod.clear();
  const Array& ids = inputs.at("Ids")[0];
  const auto width = static_cast<size_t>(out.shape.element_count(1, out.shape.rank()));
  const std::vector<uint64_t>& offsets = ids.lod[0];
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    for (size_t r = offsets[i]; r < offsets[i + 1]; ++r) {
      out.values[i * width + static_cast<size_t>(ids.values[r])] +=
          inputs.at("Updates")[0].values[r];
    }
  }
  return {{"Out", {out}}};
}

OpCase SequenceScatterCase(const std::string& name, Array x, Array ids,
                           const std::vector<int64_t>& lengths, Array updates) {
  return {.name = name,
          .type = "sequence_scatter",
          .inputs = {{"X", {std::move(x)}},
                     {"Ids", {Ragged(std::move(ids), lengths)}},
                     {"Updates", {Ragged(std::move(updates), lengths)}}},
          .reference = SequenceScatterReference,
          .outputs = {{"Out", 1}},
          .gradients = {"X", "Updates"},
          .accepted_wrong_inputs = {
              {"Out@GRAD", "other dims", "nothing but the gradient tells the shape of X"},
              {"Out@GRAD", "other rank", "nothing but the gradient tells the shape of X"}}};
}

}  // namespace

void AddSequenceScatterCases(CaseList& cases) {
  AddCasesOfLengths(cases, "", [](const Lengths& lengths) {
    const auto count = static_cast<int64_t>(lengths.each.size());
    return SequenceScatterCase("", Uniform({count, 7}, 1), Integers({lengths.rows(), 1}, 2, 0, 7),
                               lengths.each, Uniform({lengths.rows(), 1}, 3));
  });
  cases.push_back(SequenceScatterCase("rows_beyond", Uniform({5, 4}, 4), Integers({5, 1}, 5, 0, 4),
                                      {2, 3}, Uniform({5, 1}, 6)));
  cases.push_back(SequenceScatterCase("images", Uniform({2, 2, 3}, 7), Integers({5, 1}, 8, 0, 6),
                                      {1, 4}, Uniform({5, 1}, 9)));
  cases.push_back(SequenceScatterCase("vectors", Uniform({2}, 10), Integers({5}, 11, 0, 1), {1, 4},
                                      Uniform({5}, 12)));
  cases.push_back(SequenceScatterCase("ragged_x", Ragged(Uniform({3, 4}, 13), {2, 1}),
                                      Integers({5, 1}, 14, 0, 4), {1, 3, 1}, Uniform({5, 1}, 15)));
  cases.push_back(SequenceScatterCase("many", Uniform({60, 300}, 16),
                                      Integers({42000, 1}, 17, 0, 300),
                                      std::vector<int64_t>(60, 700), Uniform({42000, 1}, 18)));
  cases.push_back(SequenceScatterCase("one_sequence_of_100000", Uniform({1, 5000}, 16),
                                      Integers({100000, 1}, 17, 0, 5000), {100000},
                                      Uniform({100000, 1}, 18)));
  cases.back().benchmark_only = true;
  cases.push_back(SequenceScatterCase("int64", Integers({2, 4}, 19, -9, 9),
                                      Integers({5, 1}, 20, 0, 4), {1, 4},
                                      Integers({5, 1}, 21, -9, 9)));
  cases.back().gradients.clear();
}

}  // namespace skiff::harness
