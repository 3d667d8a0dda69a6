#include "framework/analysis/liveness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/analysis/aliasing.h"
#include "framework/analysis/op_aliasing.h"
#include "framework/analysis/plan_uses.h"
#include "tests/framework/executor/lowered_plan.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

using LivenessTest = tiny::LoweredPlanTest;

TEST_F(LivenessTest, DataReadersNameEachInstructionOnceAndTheFetchLast) {
  EXPECT_THAT(DataReaders(plan_),
              ElementsAre(ElementsAre(0u), ElementsAre(1u, 5u), ElementsAre(2u, 3u, 4u),
                          ElementsAre(2u), ElementsAre(), ElementsAre(4u, 5u), ElementsAre()));
}

TEST_F(LivenessTest, AllReadersHaveReadersOfAShapeToo) {
  plan_.instructions[4].reads_data[1] = false;
  EXPECT_THAT(DataReaders(plan_)[ValueId(2)], ElementsAre(2u, 3u));
  EXPECT_THAT(AllReaders(plan_)[ValueId(2)], ElementsAre(2u, 3u, 4u));
}

TEST_F(LivenessTest, LastReadsLeaveOutWhatIsReadOnlyForItsShape) {
  EXPECT_THAT(LastReads(plan_), ElementsAre(0, 5, 4, 2, -1, 5, -1));
  plan_.instructions[4].reads_data[1] = false;
  EXPECT_THAT(LastReads(plan_), ElementsAre(0, 5, 3, 2, -1, 5, -1));
  plan_.fetches.clear();
  EXPECT_THAT(LastReads(plan_), ElementsAre(0, 1, 3, 2, -1, 4, -1));
}

TEST_F(LivenessTest, LiveBytesCountAStorageFromItsFirstWriteToItsLastRead) {
  // a and y are fetched, b is read until 4, idle never.
  EXPECT_THAT(LiveBytes(plan_), ElementsAre(8, 16, 16, 24, 32));
  EXPECT_EQ(StorageLives(plan_)[ValueId(2)].first, 1);
  EXPECT_EQ(StorageLives(plan_)[ValueId(2)].last, 4);
  plan_.instructions[2].workspace_bytes = {100, 20};
  plan_[ValueId(6)].alias_of = ValueId(2);
  EXPECT_THAT(LiveBytes(plan_), ElementsAre(8, 16, 136, 24, 24));
}

TEST_F(LivenessTest, InPlacePairsAreThoseOfTheDefinition) {
  EXPECT_THAT(InPlacePairs(plan_, plan_.instructions[0]), ElementsAre(Pair(0, 0)));
  EXPECT_THAT(InPlacePairs(plan_, plan_.instructions[1]), ElementsAre());
}

TEST_F(LivenessTest, ViewPairsAreThoseOfTheDefinition) {
  OpDef def = *plan_.instructions[0].def;
  def.views = def.in_place;
  plan_.instructions[0].def = &def;
  EXPECT_THAT(ViewPairs(plan_, plan_.instructions[0]), ElementsAre(Pair(0, 0)));
  EXPECT_THAT(ViewPairs(plan_, plan_.instructions[3]), ElementsAre());
}

}  // namespace
}  // namespace skiff
