#include <algorithm>

#include "tests/operators/half_case.h"
#include "tests/operators/sequence/sequences.h"

namespace skiff::harness {
namespace {

Arrays SequenceSliceReference(const Arrays& inputs) {
  const Array& x = inputs.at("X")[0];
  std::vector<Rows> slices;
  for (const Rows& rows : SequencesOf(x)) {
    const auto first = static_cast<int64_t>(inputs.at("Offset")[0].values[slices.size()]);
    const auto count = static_cast<int64_t>(inputs.at("Length")[0].values[slices.size()]);
    slices.emplace_back(rows.begin() + first, rows.begin() + first + count);
  }
  return {{"Out", {Joined(slices, x)}}};
}

OpCase SequenceSliceCase(const std::string& name, Array x, std::vector<double> offsets,
                         std::vector<double> lengths) {
  const auto count = static_cast<int64_t>(lengths.size());
  return {.name = name,
          .type = "sequence_slice",
          .inputs = {{"X", {std::move(x)}},
                     {"Offset", {Values({count, 1}, std::move(offsets), DType::kInt64)}},
                     {"Length", {Values({count, 1}, std::move(lengths), DType::kInt64)}}},
          .reference = SequenceSliceReference,
          .outputs = {{"Out", 1}},
          .gradients = {"X"}};
}

// The gradient op of "heads_and_tails" by itself.
OpCase HeadsAndTailsGradient(Array x) {
  OpCase made = SequenceSliceCase("gradient_of_heads_and_tails", std::move(x), {0, 2}, {2, 2});
  made.type = "sequence_slice_grad";
  made.inputs["Out@GRAD"] = {Ragged(Uniform({4, 2}, 7), {2, 2})};
  made.outputs = {{"X@GRAD", 1}};
  made.reference = [](const Arrays& inputs) {
    Array x_grad = inputs.at("X")[0];
    std::ranges::fill(x_grad.values, 0.0);
    const auto& from = inputs.at("Out@GRAD")[0].values;
    std::copy_n(from.begin(), 4, x_grad.values.begin());
    std::copy_n(from.begin() + 4, 4, x_grad.values.begin() + 10);
    return Arrays{{"X@GRAD", {x_grad}}};
  };
  return made;
}

}  // namespace

void AddSequenceSliceCases(CaseList& cases) {
  // Of each sequence the middle, as far as there is one.
  AddCasesOfLengths(cases, "middle_", [](const Lengths& lengths) {
    std::vector<double> offsets, counts;
    for (const int64_t length : lengths.each) {
      offsets.push_back(static_cast<double>(length / 3));
      counts.push_back(static_cast<double>(length - length / 3 - length / 4));
    }
    return SequenceSliceCase("", Ragged(Uniform({lengths.rows(), 3}, 1), lengths.each), offsets,
                             counts);
  });
  const Array x = Ragged(Uniform({7, 2}, 2), {3, 4});
  cases.push_back(SequenceSliceCase("heads_and_tails", x, {0, 2}, {2, 2}));
  cases.push_back(InHalf(cases.back()));
  cases.push_back(InHalf(HeadsAndTailsGradient(x)));
  cases.push_back(SequenceSliceCase("all", x, {0, 0}, {3, 4}));
  cases.push_back(SequenceSliceCase("none", x, {3, 1}, {0, 0}));
  cases.push_back(
      SequenceSliceCase("images", Ragged(Uniform({5, 2, 2}, 3), {2, 3}), {1, 0}, {1, 2}));
  cases.push_back(SequenceSliceCase("vector", Ragged(Uniform({5}, 4), {2, 3}), {1, 0}, {1, 2}));
  cases.push_back(SequenceSliceCase("many",
                                    Ragged(Uniform({300, 65}, 5), std::vector<int64_t>(30, 10)),
                                    std::vector<double>(30, 2), std::vector<double>(30, 7)));
  cases.push_back(
      SequenceSliceCase("int64", Ragged(Integers({5, 1}, 6, -9, 9), {2, 3}), {1, 0}, {1, 2}));
  cases.back().gradients.clear();
}

}  // namespace skiff::harness
