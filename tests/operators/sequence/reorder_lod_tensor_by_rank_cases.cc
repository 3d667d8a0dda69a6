#include "tests/operators/sequence/rank_table_reference.h"

namespace skiff::harness {
namespace {

// Rows in ranked order. A ragged X: tests/framework/executor/dynamic_rnn_test.cc, since only a plan
// knows the LoD that a table ranks.
Arrays ReorderLodTensorByRankReference(const Arrays& inputs) {
  const Array& x = inputs.at("X")[0];
  const Array& table = inputs.at("RankTable")[0];
  const Rows rows = RowsOf(x);
  Rows ranked;
  for (const Row& entry : RowsOf(table)) ranked.push_back(rows[static_cast<size_t>(entry[0])]);
  return {{"Out", {Stacked(ranked, x)}}};
}

}  // namespace

void AddReorderLodTensorByRankCases(CaseList& cases) {
  AddCasesOfLengths(cases, "", [](const Lengths& lengths) {
    const auto sequences = static_cast<int64_t>(lengths.each.size());
    return OpCase{
        .name = "",
        .type = "reorder_lod_tensor_by_rank",
        .inputs = {{"X", {Uniform({sequences, 3}, 1)}}, {"RankTable", {RankTableOf(lengths.each)}}},
        .attrs = {},
        .reference = ReorderLodTensorByRankReference,
        .outputs = {{"Out", 1}},
        .gradients = {"X"}};
  });
  // What the rank table doesn't tell.
  const std::string reason = "the gradient op only knows how many rows X has";
  cases.back().accepted_wrong_inputs = {
      {"X", "other dims", reason}, {"X", "other dtype", reason}, {"X", "other rank", reason}};
}

}  // namespace skiff::harness
