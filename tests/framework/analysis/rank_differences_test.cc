#include "framework/analysis/rank_differences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/ir/text.h"
#include "framework/op/registry.h"

namespace skiff {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// Returns the Error about the program, or "".
std::string FindingIn(const Program& program) {
  try {
    CheckSameOnAllRanks(DefaultOpRegistry(), program);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Of a root block with the persistables w, w2, w3 and count, the feeds x and x2, the variables a, b
// and y, and ops.
std::string Finding(const std::string& ops) {
  const auto program = ParseProgramText(StrCat(R"(program { block 0 {
    param w float32 [4] persistable
    var count int64 [1] persistable
    param w2 float32 [4] persistable
    param w3 float32 [4] persistable
    var x float32 [4]
    var x2 float32 [2, 4]
    var a float32 [4]
    var b float32 [4]
    var y float32 [2, 4]
    )",
                                               ops, " } }"));
  return FindingIn(*program);
}

TEST(RankDifferences, APersistableMayFollowFromPersistables) {
  EXPECT_EQ(Finding(R"({Out: [a]} = scale(X: [w]) {scale = 0.5}
                       {Out: [w]} = sum(X: [w, a])
                       {Out: [count]} = increment(X: [count]) {step = 1.0})"),
            "");
}

TEST(RankDifferences, APersistableMayNotFollowFromAFeed) {
  const std::string text = Finding(R"({Out: [a]} = scale(X: [x]) {scale = 0.5}
                                      {Out: [w]} = sum(X: [w, a]))");
  EXPECT_THAT(text, HasSubstr("sum (block 0, op #1)"));
  EXPECT_THAT(text, HasSubstr("\"w\" would differ between ranks"));
  EXPECT_THAT(text, HasSubstr("computes it from \"a\", data of the rank"));
}

TEST(RankDifferences, ASumOverTheRanksIsTheSame) {
  EXPECT_EQ(Finding(R"({Out: [a]} = c_allreduce_sum(X: [x])
                       {Out: [w]} = sum(X: [w, a]))"),
            "");
}

// The statistics of all ranks are the same; what a rank makes of its data by them isn't.
TEST(RankDifferences, ACollectiveOpMayHaveOutputsOfTheRank) {
  const auto normalize = [](const std::string& then) {
    return Finding(R"({Y: [y], MeanOut: [w], VarianceOut: [w2], SavedMean: [a]} =
                          sync_batch_norm(X: [x2], Mean: [w], Variance: [w2]))" +
                   then);
  };
  EXPECT_EQ(normalize("{Out: [w]} = sum(X: [w, a])"), "");
  EXPECT_THAT(normalize("{Out: [w3]} = reduce_sum(X: [y]) {dim = ints [0]}"),
              HasSubstr("computes it from \"y\", data of the rank"));
}

// Ranks get other elements of a sum.
TEST(RankDifferences, APartOfASumIsOfTheRank) {
  EXPECT_THAT(Finding(R"({Out: [a]} = c_reducescatter(X: [x]) {nranks = 2}
                         {Out: [w]} = sum(X: [w, a]))"),
              HasSubstr("\"w\" would differ between ranks, since the op computes it from \"a\""));
  EXPECT_THAT(Finding(R"({Out: [a, b]} = c_reduce_scatter_list(X: [x, w]) {parts = longs [0, 4, 8]}
                         {Out: [w]} = sum(X: [w, b]))"),
              HasSubstr("\"w\" would differ between ranks, since the op computes it from \"b\""));
}

// The ops that wait for a stream give what they get.
TEST(RankDifferences, AnIdentityGivesAllRanksTheSameIfItGetsTheSame) {
  for (const char* type : {"c_sync_calc_stream", "c_sync_comm_stream"}) {
    SCOPED_TRACE(type);
    const auto finding = [&](const std::string& before) {
      return Finding(StrCat(before, "{Out: [a]} = ", type, "(X: [b]) {Out: [w]} = sum(X: [w, a])"));
    };
    EXPECT_EQ(finding("{Out: [b]} = c_allreduce_sum(X: [x])"), "");
    EXPECT_THAT(finding("{Out: [b]} = scale(X: [x])"),
                HasSubstr("the op computes it from \"a\", data of the rank"));
  }
}

TEST(RankDifferences, OnlyCollectiveOpsWithActivationsWorkOnTheBatchOfTheRank) {
  std::vector<std::string> types;
  for (const std::string& type : DefaultOpRegistry().Types()) {
    if (WorksOnBatch(DefaultOpRegistry().Get(type))) types.push_back(type);
  }
  EXPECT_THAT(types, UnorderedElementsAre("sync_batch_norm", "sync_batch_norm_grad"));
}

// What the variable held before doesn't matter.
TEST(RankDifferences, AVariableIsTheSameAfterAWriteOfTheSame) {
  EXPECT_EQ(Finding(R"({Out: [a]} = scale(X: [x])
                       {Out: [a]} = scale(X: [w])
                       {Out: [w]} = sum(X: [w, a]))"),
            "");
}

TEST(RankDifferences, APersistableMayNotFollowFromRandomNumbers) {
  EXPECT_THAT(Finding(R"({Out: [a], Mask: [b]} = dropout(X: [w]) {dropout_prob = 0.5}
                         {Out: [w]} = sum(X: [w, a]))"),
              HasSubstr("\"w\" would differ between ranks, since the op computes it from \"a\""));
  EXPECT_THAT(Finding("{Out: [w]} = uniform_random() {shape = longs [4]}"),
              HasSubstr("computes it from random numbers of the rank"));
}

// A shape is the same on all ranks only if their batches are as large: nothing says so.
TEST(RankDifferences, AShapeOfAFeedIsDataOfTheRank) {
  EXPECT_EQ(Finding("{Out: [w]} = fill_zeros_like(X: [w])"), "");
}

TEST(RankDifferences, GradientsMayAddUpOnARank) {
  EXPECT_EQ(Finding(R"({AccumulatedOut: [w]} = gradient_merge(Accumulated: [w], Grad: [x],
                           Count: [count]) {steps = long 2, mean = true})"),
            "");
}

TEST(RankDifferences, ALoopWritesWhatItsBodyWrites) {
  const auto program = ParseProgramText(R"(program {
    block 0 {
      param w float32 [4] persistable
      var x float32 [4]
      var more bool [1]
      var scopes step_scopes float32 []
      {Out: [w], StepScopes: [scopes]} = while(X: [x, w], Condition: [more]) {sub_block = block 1}
    }
    block 1 parent=0 {
      {Out: [w]} = sum(X: [w, x])
    }
  })");
  EXPECT_THAT(FindingIn(*program), HasSubstr("\"w\" would differ between ranks"));
}

}  // namespace
}  // namespace skiff
