#include <algorithm>

#include "tests/operators/sequence/sequences.h"

namespace skiff::harness {
namespace {

Arrays SequenceEraseReference(const Arrays& inputs, const std::vector<int32_t>& tokens) {
  const Array& x = inputs.at("X")[0];
  std::vector<Rows> sequences = SequencesOf(x);
  for (Rows& rows : sequences) {
    std::erase_if(rows, [&](const Row& row) {
      return std::ranges::count(tokens, static_cast<int32_t>(row[0])) > 0;
    });
  }
  Array out = Joined(sequences, x);
  out.lod.insert(out.lod.begin(), x.lod.begin(), x.lod.end() - 1);
  return {{"Out", {out}}};
}

OpCase SequenceEraseCase(const std::string& name, Array x, const std::vector<int32_t>& tokens) {
  return {.name = name,
          .type = "sequence_erase",
          .inputs = {{"X", {std::move(x)}}},
          .attrs = {{"tokens", tokens}},
          .reference = [=](const Arrays& inputs) { return SequenceEraseReference(inputs, tokens); },
          .outputs = {{"Out", 1}}};
}

}  // namespace

void AddSequenceEraseCases(CaseList& cases) {
  AddCasesOfLengths(cases, "", [](const Lengths& lengths) {
    return SequenceEraseCase("", Ragged(Integers({lengths.rows(), 1}, 1, 0, 5), lengths.each),
                             {3, 0, 7});
  });
  const Array x = Ragged(Integers({9, 1}, 2, -2, 3, DType::kInt32), {4, 0, 5});
  cases.push_back(SequenceEraseCase("int32", x, {-1, 2}));
  cases.push_back(SequenceEraseCase("no_tokens", x, {}));
  cases.push_back(SequenceEraseCase("tokens_twice", x, {1, 1, 0, 1}));
  cases.push_back(SequenceEraseCase("everything", x, {-2, -1, 0, 1, 2}));
  cases.push_back(SequenceEraseCase("two_levels",
                                    Ragged(Integers({7, 1}, 3, 0, 3), {1, 0, 2}, {3, 3, 1}), {1}));
  const Array beyond_int = Values({3, 1}, {1, 4294967297, 2}, DType::kInt64);
  cases.push_back(SequenceEraseCase("beyond_int", Ragged(beyond_int, {2, 1}), {1}));
  cases.push_back(SequenceEraseCase(
      "many", Ragged(Integers({40000, 1}, 4, 0, 9), std::vector<int64_t>(80, 500)), {2, 5}));
}

}  // namespace skiff::harness
