// Whole states in a scope become shards, and shards become whole states for files.
#include "framework/executor/storage/sharded_states.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/ir/text.h"
#include "tests/harness/error_text.h"
#include "tests/harness/thread_ranks.h"

namespace skiff {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// 30 elements in two parameters. Rank 0 of 3 has the first 16 elements, rank 1 the next 8, of both
// parameters, and rank 2 the rest.
constexpr int64_t kCuts[] = {0, 16, 24, 30};
constexpr int64_t kShardElements[] = {16, 32, 16};

std::unique_ptr<Program> ProgramOf(int32_t rank) {
  return ParseProgramText(
      StrCat("program { block 0 {\n", "  param w float32 [4, 5] persistable\n",
             "  param b float32 [10] persistable\n", "  var gw float32 [4, 5]\n",
             "  var gb float32 [10]\n", "  var w_v float32 [4, 5] persistable\n",
             "  var b_v float32 [10] persistable\n", "  var v@SHARD@1 float32 [",
             kShardElements[rank], "] persistable\n", "  var rate float32 [1] persistable\n",
             "  {ParamOut: [w, b], VelocityOut: [v@SHARD@1]} = merged_momentum(Param: [w, b], ",
             "Grad: [gw, gb], Velocity: [v@SHARD@1], LearningRate: [rate]) ",
             "{mu = 0.9, part = longs [", kCuts[rank], ", ", kCuts[rank + 1], "], ",
             "sharded = strings [\"Velocity\"], shard_of = strings [\"w_v\", \"b_v\"]}\n} }\n"));
}

Tensor Numbers(const Shape& shape, float first) {
  std::vector<float> values(static_cast<size_t>(shape.element_count()));
  std::iota(values.begin(), values.end(), first);
  return Tensor::FromValues<float>(shape, values);
}

// The scope after the startup program: state element k of both, taken one after the other, is k.
void SetWhole(Scope* scope) {
  scope->Set("w_v", Numbers({4, 5}, 0));
  scope->Set("b_v", Numbers({10}, 20));
  scope->Set("w", Numbers({4, 5}, 100));
}

TEST(ShardedStates, AreThePartOfTheRank) {
  Scope scope;
  SetWhole(&scope);
  ShardStates(*ProgramOf(1), &scope);
  EXPECT_THAT(scope.Names(), ElementsAre("v@SHARD@1", "w"));
  const std::vector<float> shard = scope.Get("v@SHARD@1").ToVector<float>();
  // 4 elements of w, and from the next multiple of 16 on 4 of b.
  EXPECT_THAT(std::vector(shard.begin(), shard.begin() + 5), ElementsAre(16, 17, 18, 19, 0));
  EXPECT_THAT(std::vector(shard.begin() + 16, shard.begin() + 21), ElementsAre(20, 21, 22, 23, 0));
}

TEST(ShardedStates, FreeTheMemoryOfWholeStates) {
  Scope scope;
  SetWhole(&scope);
  const std::weak_ptr<internal::Buffer> whole = scope.Get("w_v").buffer();
  ShardStates(*ProgramOf(1), &scope);
  EXPECT_TRUE(whole.expired());
}

TEST(ShardedStates, StayIfTheScopeHasNoWholeStates) {
  Scope scope;
  SetWhole(&scope);
  ShardStates(*ProgramOf(1), &scope);
  const uint64_t generation = scope.generation();
  ShardStates(*ProgramOf(1), &scope);
  EXPECT_EQ(scope.generation(), generation);
}

// As a checkpoint does that is loaded, or a user.
TEST(ShardedStates, TakeWhatHasBeenSetSince) {
  Scope scope;
  SetWhole(&scope);
  ShardStates(*ProgramOf(1), &scope);
  scope.Set("b_v", Numbers({10}, 50));
  ShardStates(*ProgramOf(1), &scope);
  const std::vector<float> shard = scope.Get("v@SHARD@1").ToVector<float>();
  EXPECT_THAT(std::vector(shard.begin(), shard.begin() + 4), ElementsAre(16, 17, 18, 19));
  EXPECT_THAT(std::vector(shard.begin() + 16, shard.begin() + 20), ElementsAre(50, 51, 52, 53));
  EXPECT_EQ(scope.Find("b_v"), nullptr);
}

TEST(ShardedStates, AreGatheredOnRank0) {
  std::vector<std::string> names_of_rank_1;
  std::vector<float> w_v;
  std::vector<float> b_v;
  const std::vector<std::string> errors =
      RunOnThreadRanks(3, {.time_limit = 60, .seed = 3}, [&](Communicator* communicator) {
        const int32_t rank = communicator->world().rank;
        const std::unique_ptr<Program> program = ProgramOf(rank);
        Scope scope;
        SetWhole(&scope);
        ShardStates(*program, &scope);
        const std::unique_ptr<Scope> whole = GatherStates(*program, scope, communicator);
        if (rank == 1) names_of_rank_1 = whole->Names();
        if (rank != 0) return;
        EXPECT_THAT(whole->Names(), ElementsAre("b_v", "w", "w_v"));
        EXPECT_EQ(whole->Get("w").buffer(), scope.Get("w").buffer()) << "no copies of the rest";
        EXPECT_EQ(whole->Get("w_v").shape(), (Shape{4, 5}));
        w_v = whole->Get("w_v").ToVector<float>();
        b_v = whole->Get("b_v").ToVector<float>();
      });
  EXPECT_THAT(errors, Each(IsEmpty()));
  EXPECT_THAT(names_of_rank_1, ElementsAre("w"));
  EXPECT_EQ(w_v, (Numbers({20}, 0).ToVector<float>()));
  EXPECT_EQ(b_v, (Numbers({10}, 20).ToVector<float>()));
}

TEST(ShardedStates, MustBeWholeOrInAShard) {
  Scope scope;
  scope.Set("w_v", Numbers({4, 5}, 0));
  EXPECT_THAT(ErrorText([&] { ShardStates(*ProgramOf(1), &scope); }),
              HasSubstr("the scope lacks \"b_v\", an optimizer state"));
  EXPECT_NE(scope.Find("w_v"), nullptr);
}

TEST(ShardedStates, MustFitTheProgram) {
  Scope scope;
  SetWhole(&scope);
  scope.Set("b_v", Numbers({9}, 0));
  EXPECT_THAT(ErrorText([&] { ShardStates(*ProgramOf(1), &scope); }),
              HasSubstr("variable \"b_v\": the scope holds float32 [9], the program declares"));
}

}  // namespace
}  // namespace skiff
