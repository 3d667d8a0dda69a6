#include "tests/operators/sequence/sequences.h"

namespace skiff::harness {
namespace {

Arrays RowConvReference(const Arrays& inputs) {
  const Array& x = inputs.at("X")[0];
  const Rows filter = RowsOf(inputs.at("Filter")[0]);
  Array ragged = x;
  if (x.lod.empty()) {
    ragged = Ragged(x, std::vector<int64_t>(static_cast<size_t>(x.shape[0]), x.shape[1]));
    ragged.shape = {x.shape[0] * x.shape[1], x.shape[2]};
  }
  std::vector<Rows> sums;
  for (const Rows& rows : SequencesOf(ragged)) {
    sums.emplace_back(rows.size(), Row(filter[0].size(), 0));
    for (size_t row = 0; row < rows.size(); ++row) {
      for (size_t k = 0; k < filter.size() && row + k < rows.size(); ++k) {
        for (size_t c = 0; c < filter[k].size(); ++c) {
          sums.back()[row][c] += rows[row + k][c] * filter[k][c];
        }
      }
    }
  }
  Array out = Joined(sums, ragged);
  out.shape = x.shape;
  if (x.lod.empty()) out.lod.clear();
  return {{"Out", {out}}};
}

OpCase RowConvCase(Array x, int64_t context) {
  const int64_t width = x.shape[x.shape.rank() - 1];
  return {.name = "",
          .type = "row_conv",
          .inputs = {{"X", {std::move(x)}}, {"Filter", {Uniform({context, width}, 9)}}},
          .attrs = {},
          .reference = RowConvReference,
          .outputs = {{"Out", 1}},
          .gradients = {"X", "Filter"}};
}

}  // namespace

void AddRowConvCases(CaseList& cases) {
  AddCasesOfLengths(cases, "", [](const Lengths& lengths) {
    return RowConvCase(Ragged(Uniform({lengths.rows(), 5}, 1), lengths.each), 3);
  });
  cases.push_back(RowConvCase(Uniform({2, 4, 3}, 2), 2));
  cases.back().name = "batch";
  cases.push_back(RowConvCase(Ragged(Uniform({5, 3}, 3), {2, 3}), 7));
  cases.back().name = "context_longer_than_sequences";
  cases.push_back(RowConvCase(Ragged(Uniform({5, 3}, 4), {2, 3}), 1));
  cases.back().name = "context_of_one_row";
}

}  // namespace skiff::harness
