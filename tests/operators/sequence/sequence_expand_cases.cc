#include "tests/operators/sequence/sequences.h"

namespace skiff::harness {
namespace {

// The sequences of x, or its rows as sequences of one.
std::vector<Rows> ItemsOf(const Array& x) {
  if (!x.lod.empty()) return SequencesOf(x);
  std::vector<Rows> items;
  for (const Row& row : RowsOf(x)) items.push_back({row});
  return items;
}

Arrays SequenceExpandReference(const Arrays& inputs, size_t level) {
  const Array& x = inputs.at("X")[0];
  const std::vector<uint64_t>& offsets = inputs.at("Y")[0].lod[level];
  const std::vector<Rows> items = ItemsOf(x);
  std::vector<Rows> repeats;
  for (size_t i = 0; i < items.size(); ++i) {
    for (uint64_t k = offsets[i]; k < offsets[i + 1]; ++k) repeats.push_back(items[i]);
  }
  Array out = Joined(repeats, x);
  if (x.lod.empty()) out.lod.clear();
  return {{"Out", {out}}};
}

// `level`: of Y; the last one is the default.
OpCase SequenceExpandCase(const std::string& name, Array x, Array y, size_t level = 0) {
  OpCase made{
      .name = name,
      .type = "sequence_expand",
      .inputs = {{"X", {std::move(x)}}, {"Y", {std::move(y)}}},
      .reference = [=](const Arrays& inputs) { return SequenceExpandReference(inputs, level); },
      .outputs = {{"Out", 1}},
      .gradients = {"X"}};
  if (made.inputs["Y"][0].lod.size() > level + 1)
    made.attrs = {{"ref_level", static_cast<int32_t>(level)}};
  return made;
}

int64_t CountOf(const Lengths& lengths) { return static_cast<int64_t>(lengths.each.size()); }

// Once, twice, not at all, once, …
std::vector<int64_t> SomeTimes(int64_t count) {
  std::vector<int64_t> times;
  for (int64_t i = 0; i < count; ++i) times.push_back((i + 1) % 3);
  return times;
}

}  // namespace

void AddSequenceExpandCases(CaseList& cases) {
  AddCasesOfLengths(cases, "rows_", [](const Lengths& lengths) {
    return SequenceExpandCase("", Uniform({CountOf(lengths), 3}, 1),
                              Ragged(Uniform({lengths.rows(), 2}, 2), lengths.each));
  });
  AddCasesOfLengths(cases, "sequences_", [](const Lengths& lengths) {
    const Lengths times{"", SomeTimes(CountOf(lengths))};
    return SequenceExpandCase("", Ragged(Uniform({lengths.rows(), 3}, 3), lengths.each),
                              Ragged(Uniform({times.rows(), 1}, 4), times.each));
  });
  const Array two_levels = Ragged(Uniform({8, 1}, 5), {2, 0, 2}, {3, 3, 0, 2});
  cases.push_back(SequenceExpandCase("upper_level", Ragged(Uniform({5, 2}, 6), {1, 2, 2}),
                                     two_levels, /*level=*/0));
  cases.push_back(
      SequenceExpandCase("lowest_level", Ragged(Uniform({5, 2}, 7), {1, 2, 0, 2}), two_levels, 1));
  cases.push_back(SequenceExpandCase("rows_of_upper_level", Uniform({3, 2}, 8), two_levels, 0));
  cases.push_back(SequenceExpandCase("images", Ragged(Uniform({5, 2, 3}, 9), {2, 3}),
                                     Ragged(Uniform({3, 1}, 10), {2, 1})));
  cases.push_back(
      SequenceExpandCase("vector", Uniform({3}, 11), Ragged(Uniform({4}, 12), {3, 0, 1})));
  cases.push_back(SequenceExpandCase("many",
                                     Ragged(Uniform({40, 65}, 13), std::vector<int64_t>(8, 5)),
                                     Ragged(Uniform({160, 1}, 14), std::vector<int64_t>(8, 20))));
  cases.push_back(SequenceExpandCase("int64", Integers({2, 2}, 15, -9, 9),
                                     Ragged(Uniform({4, 1}, 16), {1, 3})));
  cases.back().gradients.clear();
}

}  // namespace skiff::harness
