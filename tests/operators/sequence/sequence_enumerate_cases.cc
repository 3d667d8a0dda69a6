#include "tests/operators/sequence/sequences.h"

namespace skiff::harness {
namespace {

Arrays SequenceEnumerateReference(const Arrays& inputs, int32_t window, int32_t pad) {
  const Array& x = inputs.at("X")[0];
  std::vector<Rows> sequences;
  for (const Rows& rows : SequencesOf(x)) {
    sequences.emplace_back();
    for (size_t row = 0; row < rows.size(); ++row) {
      Row seen;
      for (size_t k = row; k < row + static_cast<size_t>(window); ++k) {
        seen.push_back(k < rows.size() ? rows[k][0] : pad);
      }
      sequences.back().push_back(seen);
    }
  }
  Array out = Joined(sequences, x);
  out.shape[1] = window;
  return {{"Out", {out}}};
}

OpCase SequenceEnumerateCase(Array x, int32_t window, int32_t pad) {
  return {.name = "",
          .type = "sequence_enumerate",
          .inputs = {{"X", {std::move(x)}}},
          .attrs = {{"win_size", window}, {"pad_value", pad}},
          .reference =
              [=](const Arrays& inputs) { return SequenceEnumerateReference(inputs, window, pad); },
          .outputs = {{"Out", 1}}};
}

}  // namespace

void AddSequenceEnumerateCases(CaseList& cases) {
  AddCasesOfLengths(cases, "", [](const Lengths& lengths) {
    return SequenceEnumerateCase(Ragged(Integers({lengths.rows(), 1}, 1, 1, 99), lengths.each), 3,
                                 0);
  });
  cases.push_back(
      SequenceEnumerateCase(Ragged(Integers({5, 1}, 2, 1, 99, DType::kInt32), {2, 0, 3}), 2, -7));
  cases.back().name = "int32_and_a_padding";
  cases.push_back(SequenceEnumerateCase(Ragged(Integers({3, 1}, 3, 1, 99), {2, 1}), 9, 0));
  cases.back().name = "longer_than_any_sequence";
}

}  // namespace skiff::harness
