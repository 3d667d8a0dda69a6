#include "tests/operators/half_case.h"
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

Arrays RestoredOrderReference(const Arrays& inputs) {
  const Array& ranked = inputs.at("X")[0];
  Rows restored(static_cast<size_t>(ranked.shape[0]));
  size_t rank = 0;
  for (const Row& entry : RowsOf(inputs.at("RankTable")[0])) {
    restored[static_cast<size_t>(entry[0])] = RowsOf(ranked)[rank++];
  }
  return {{"Out", {Stacked(restored, ranked)}}};
}

OpCase ReorderCase(const std::string& type, const Lengths& lengths) {
  const auto sequences = static_cast<int64_t>(lengths.each.size());
  const bool restores = type.ends_with("_grad");
  return {
      .name = lengths.name,
      .type = type,
      .inputs = {{"X", {Uniform({sequences, 3}, 1)}}, {"RankTable", {RankTableOf(lengths.each)}}},
      .reference = restores ? RestoredOrderReference : ReorderLodTensorByRankReference,
      .outputs = {{"Out", 1}}};
}

}  // namespace

void AddReorderLodTensorByRankCases(CaseList& cases) {
  AddCasesOfLengths(cases, "", [](const Lengths& lengths) {
    OpCase made = ReorderCase("reorder_lod_tensor_by_rank", lengths);
    made.gradients = {"X"};
    return made;
  });
  // What the rank table doesn't tell.
  const std::string reason = "the gradient op only knows how many rows X has";
  cases.back().accepted_wrong_inputs = {
      {"X", "other dims", reason}, {"X", "other dtype", reason}, {"X", "other rank", reason}};
  for (const char* type : {"reorder_lod_tensor_by_rank", "reorder_lod_tensor_by_rank_grad"}) {
    cases.push_back(InHalf(ReorderCase(type, {"four", {2, 1, 4, 2}})));
  }
}

}  // namespace skiff::harness
