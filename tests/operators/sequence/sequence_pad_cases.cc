#include <algorithm>

#include "tests/operators/sequence/sequences.h"

namespace skiff::harness {
namespace {

Arrays SequencePadReference(const Arrays& inputs, int32_t padded_length) {
  const Array& x = inputs.at("X")[0];
  const Array& pad = inputs.at("PadValue")[0];
  const std::vector<Rows> sequences = SequencesOf(x);
  size_t length = 0;
  for (const Rows& rows : sequences) length = std::max(length, rows.size());
  if (padded_length > 0) length = static_cast<size_t>(padded_length);
  const auto width = static_cast<size_t>(x.shape.element_count(1, x.shape.rank()));
  Row padding;
  for (size_t i = 0; i < width; ++i) padding.push_back(pad.values[pad.values.size() == 1 ? 0 : i]);
  Rows rows;
  std::vector<double> lengths;
  for (const Rows& sequence : sequences) {
    lengths.push_back(static_cast<double>(sequence.size()));
    rows.insert(rows.end(), sequence.begin(), sequence.end());
    rows.insert(rows.end(), length - sequence.size(), padding);
  }
  Array out = Stacked(rows, x);
  const auto count = static_cast<int64_t>(sequences.size());
  out.shape = {count, static_cast<int64_t>(length)};
  for (int axis = 1; axis < x.shape.rank(); ++axis) out.shape.Append(x.shape[axis]);
  return {{"Out", {out}}, {"Length", {Values({count}, lengths, DType::kInt64)}}};
}

OpCase SequencePadCase(const std::string& name, Array x, Array pad_value,
                       int32_t padded_length = -1) {
  OpCase made{.name = name,
              .type = "sequence_pad",
              .inputs = {{"X", {std::move(x)}}, {"PadValue", {std::move(pad_value)}}},
              .reference =
                  [=](const Arrays& inputs) { return SequencePadReference(inputs, padded_length); },
              .outputs = {{"Out", 1}, {"Length", 1}},
              .gradients = {"X"}};
  if (padded_length > 0) made.attrs = {{"padded_length", padded_length}};
  return made;
}

}  // namespace

void AddSequencePadCases(CaseList& cases) {
  AddCasesOfLengths(cases, "", [](const Lengths& lengths) {
    return SequencePadCase("", Ragged(Uniform({lengths.rows(), 3}, 1), lengths.each),
                           Values({1}, {0.5}));
  });
  AddCasesOfLengths(cases, "row_of_padding_", [](const Lengths& lengths) {
    return SequencePadCase("", Ragged(Uniform({lengths.rows(), 3}, 2), lengths.each),
                           Uniform({3}, 3));
  });
  const Array x = Ragged(Uniform({5, 2}, 4), {3, 0, 2});
  cases.push_back(SequencePadCase("longer", x, Values({1}, {-1}), 6));
  cases.push_back(SequencePadCase("one", Ragged(Uniform({2, 2}, 14), {2}), Values({1}, {-1}), 6));
  cases.push_back(SequencePadCase("as_long", x, Values({1}, {-1}), 3));
  cases.push_back(SequencePadCase("scalar_of_padding", x, Values(Shape(), {-1}), 4));
  cases.push_back(
      SequencePadCase("no_rows", Ragged(Uniform({0, 2}, 5), {0, 0}), Uniform({2}, 6), 3));
  cases.push_back(
      SequencePadCase("images", Ragged(Uniform({5, 2, 2}, 7), {2, 3}), Uniform({2, 2}, 8), 4));
  cases.push_back(SequencePadCase("numbers", Ragged(Uniform({5}, 9), {2, 3}), Values({1}, {0.5})));
  cases.push_back(
      SequencePadCase("columns", Ragged(Uniform({5, 1}, 10), {4, 1}), Values({1}, {0.5})));
  cases.push_back(SequencePadCase("rows_without_elements", Ragged(Uniform({5, 0}, 11), {4, 1}),
                                  Uniform({0}, 12)));
  cases.push_back(SequencePadCase("int64", Ragged(Integers({5, 1}, 13, -9, 9), {4, 1}),
                                  Values({1}, {7}, DType::kInt64)));
  cases.back().gradients.clear();
}

}  // namespace skiff::harness
