// c_allreduce_rows on several ranks: the rows, and the bits, of gradient_merge_rows in as many
// runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "tests/harness/thread_ranks.h"
#include "tests/operators/collective/rank_lists.h"
#include "tests/operators/collective/rank_run.h"

namespace skiff::harness {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kHeight = 50;

// Returns a gradient with drawn row numbers, which repeat and leave slots unused.
Tensor DrawnRows(std::mt19937_64* random, int64_t slots, int64_t width, DType dtype) {
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < slots; ++i) {
    rows.push_back(static_cast<int64_t>((*random)() % (kHeight + 1)) - 1);
  }
  return ToTensor(SelectedRows(Uniform({slots, width}, (*random)()), rows, kHeight), dtype);
}

// Returns Out of gradient_merge_rows after the last of as many runs as there are gradients.
Tensor MergedInTurn(const std::vector<Tensor>& gradients, bool mean) {
  const DType dtype = gradients.front().dtype();
  const int64_t width = gradients.front().shape()[1];
  NamedTensors state = {
      {"sums", ZerosLike(ToTensor(Uniform({kHeight, width}, 1), dtype))},
      {"touched",
       ZerosLike(ToTensor(Values({kHeight}, std::vector<double>(kHeight)), DType::kBool))}};
  Op op("gradient_merge_rows");
  op.SetInput("Accumulated", {"sums"}).SetInput("Touched", {"touched"});
  op.SetInput("Grad", {"grad"}).SetInput("Count", {"count"});
  op.SetOutput("AccumulatedOut", {"new_sums"}).SetOutput("TouchedOut", {"new_touched"});
  op.SetOutput("Out", {"out"}).SetAttr("mean", mean);
  op.SetAttr("steps", static_cast<int64_t>(gradients.size()));
  Tensor out;
  for (size_t i = 0; i < gradients.size(); ++i) {
    state["grad"] = gradients[i];
    state["count"] =
        ToTensor(Values({1}, {static_cast<double>(i + 1)}, DType::kInt64), DType::kInt64);
    PreparedOp merge(DefaultOpRegistry(), op, state);
    merge.Run();
    NamedTensors outputs = merge.Outputs();
    state["sums"] = outputs.at("new_sums");
    state["touched"] = outputs.at("new_touched");
    out = outputs.at("out");
  }
  return out;
}

Op RowsOp(bool mean) {
  Op op("c_allreduce_rows");
  op.SetInput("X", {"x"}).SetOutput("Out", {"out"}).SetAttr("mean", mean);
  return op;
}

std::vector<NamedTensors> InputsOf(const std::vector<Tensor>& gradients) {
  std::vector<NamedTensors> inputs;
  for (const Tensor& gradient : gradients) inputs.push_back({{"x", gradient}});
  return inputs;
}

// Values of unused slots have no meaning: ToPlain makes them 0.
void ExpectMergedInTurn(const std::vector<Tensor>& gradients, bool mean) {
  const RankRun run = RunOpOnRanks(RowsOp(mean), InputsOf(gradients));
  ASSERT_THAT(run.errors, Each(IsEmpty()));
  const Tensor expected = MergedInTurn(gradients, mean);
  for (const NamedTensors& outputs : run.outputs) {
    EXPECT_TRUE(SameBits(outputs.at("out"), expected));
  }
}

TEST(CAllreduceRows, AddsAsGradientMergeRowsDoesInTurn) {
  std::mt19937_64 random(7);
  for (int32_t ranks = 1; ranks <= 5; ++ranks) {
    for (const int64_t width : {1, 3, 70}) {
      for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
        for (const bool mean : {false, true}) {
          SCOPED_TRACE(StrCat(ranks, " ranks, width ", width, ", ", dtype, ", mean ", mean));
          std::vector<Tensor> gradients;
          for (int32_t rank = 0; rank < ranks; ++rank) {
            // Any number of slots, from none to more than the table has rows.
            const auto slots = static_cast<int64_t>(random() % 90);
            gradients.push_back(DrawnRows(&random, slots, width, dtype));
          }
          ExpectMergedInTurn(gradients, mean);
        }
      }
    }
  }
}

// The bits are those of gradients that a program casts to float32 first.
TEST(CAllreduceRows, AddsHalfInFloat32AndSendsHalf) {
  std::mt19937_64 random(11);
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    SCOPED_TRACE(dtype);
    std::vector<Tensor> gradients, wide;
    for (int rank = 0; rank < 3; ++rank) {
      gradients.push_back(DrawnRows(&random, 20, 3, dtype));
      wide.push_back(Cast(gradients.back(), DType::kFloat32));
    }
    const RankRun run = RunOpOnRanks(RowsOp(true), InputsOf(gradients));
    ASSERT_THAT(run.errors, Each(IsEmpty()));
    for (const NamedTensors& outputs : run.outputs) {
      EXPECT_TRUE(SameBits(outputs.at("out"), MergedInTurn(wide, true)));
    }
    const auto in_use = 20 - std::ranges::count(gradients[0].rows(), -1);
    EXPECT_EQ(run.bytes_sent[0], 2 * (8 + in_use * (8 + 3 * 2)));
    const RankRun alone = RunOpOnRanks(RowsOp(true), InputsOf({gradients[0]}));
    EXPECT_TRUE(SameBits(alone.outputs.at(0).at("out"), MergedInTurn({wide[0]}, true)));
  }
}

TEST(CAllreduceRows, TakesRanksWithoutRows) {
  std::mt19937_64 random(8);
  const Tensor some = DrawnRows(&random, 9, 3, DType::kFloat32);
  const Tensor none = DrawnRows(&random, 0, 3, DType::kFloat32);
  const Tensor unused =
      ToTensor(SelectedRows(Uniform({4, 3}, 1), {-1, -1, -1, -1}, kHeight), DType::kFloat32);
  ExpectMergedInTurn({some, none, some}, true);
  ExpectMergedInTurn({none, unused, some}, true);
  ExpectMergedInTurn({none, none}, false);
}

// In the next run, a rank may have other rows than in the last: what it has kept is no use.
TEST(CAllreduceRows, TakesOtherRowsInEachRun) {
  std::mt19937_64 random(9);
  const auto draw = [&] {
    std::vector<Tensor> gradients;
    for (int rank = 0; rank < 2; ++rank) {
      gradients.push_back(DrawnRows(&random, 30, 3, DType::kFloat32));
    }
    return gradients;
  };
  const std::vector<std::vector<Tensor>> steps = {draw(), draw(), draw()};
  const auto errors = RunOnThreadRanks(2, {.time_limit = 60}, [&](Communicator* own) {
    const auto rank = static_cast<size_t>(own->world().rank);
    const Op op = RowsOp(true);
    PreparedOp prepared(DefaultOpRegistry(), op, {{"x", steps[0][rank]}}, {.communicator = own});
    for (const std::vector<Tensor>& step : steps) {
      prepared.Load({{"x", step[rank]}}, 0xFF);
      prepared.Run();
      EXPECT_TRUE(SameBits(prepared.Outputs().at("out"), MergedInTurn(step, true)));
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(CAllreduceRows, SendsTheRowsInUseToEachRank) {
  const Tensor x =
      ToTensor(SelectedRows(Uniform({5, 3}, 1), {4, -1, 4, 0, -1}, kHeight), DType::kFloat32);
  const RankRun run = RunOpOnRanks(RowsOp(true), InputsOf({x, x, x}));
  // The number of rows, the numbers of three rows, and their values.
  EXPECT_THAT(run.bytes_sent, Each(2 * (8 + 3 * 8 + 3 * 3 * 4)));
}

TEST(CAllreduceRows, TakesXAloneIfAllRanksSkip) {
  std::mt19937_64 random(10);
  Op op = RowsOp(true);
  std::vector<Tensor> gradients;
  for (int rank = 0; rank < 3; ++rank) {
    gradients.push_back(DrawnRows(&random, 30, 3, DType::kFloat32));
  }
  std::vector<NamedTensors> inputs = InputsOf(gradients);
  AddSkip(true, &op, &inputs);
  const RankRun run = RunOpOnRanks(op, inputs);
  ASSERT_THAT(run.errors, Each(IsEmpty()));
  EXPECT_THAT(run.bytes_sent, Each(0));
  for (size_t rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(SameBits(run.outputs[rank].at("out"), MergedInTurn({gradients[rank]}, false)));
  }
}

}  // namespace
}  // namespace skiff::harness
