#include "framework/comm/gather.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/harness/thread_ranks.h"

namespace skiff {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TEST(Gather, GivesNumbersOfAllRanksToEachRank) {
  const auto errors = RunOnThreadRanks(3, {.seed = 2}, [](Communicator* own) {
    const int32_t rank = own->world().rank;
    EXPECT_THAT(GatherNumbers(own, rank + 0.5), ElementsAre(0.5, 1.5, 2.5));
    const std::vector<int64_t> two = {rank * 10, rank * 10 + 1};
    EXPECT_THAT(GatherNumbers<int64_t>(own, two), ElementsAre(0, 1, 10, 11, 20, 21));
    EXPECT_THAT(GatherNumbers<int64_t>(own, std::vector<int64_t>()), ElementsAre());
  });
  EXPECT_THAT(errors, Each(""));
}

TEST(Gather, GivesTheLargestNumberToEachRank) {
  const auto errors = RunOnThreadRanks(3, {.seed = 2}, [](Communicator* own) {
    EXPECT_EQ(MaxOverRanks(own, -(own->world().rank - 1) * (own->world().rank - 1)), 0);
  });
  EXPECT_THAT(errors, Each(""));
}

TEST(Gather, GivesTextsOfAnyLengthsToEachRank) {
  const auto errors = RunOnThreadRanks(3, {.seed = 2}, [](Communicator* own) {
    const std::string text(own->world().rank * 3, 'a');
    EXPECT_THAT(GatherTexts(own, text), ElementsAre("", "aaa", "aaaaaa"));
  });
  EXPECT_THAT(errors, Each(""));
}

TEST(Gather, WorksWithoutOtherRanks) {
  EXPECT_EQ(RankCount(nullptr), 1);
  EXPECT_THAT(GatherNumbers(nullptr, 3), ElementsAre(3));
  EXPECT_EQ(MaxOverRanks(nullptr, 3), 3);
  EXPECT_THAT(GatherTexts(nullptr, "abc"), ElementsAre("abc"));
}

}  // namespace
}  // namespace skiff
