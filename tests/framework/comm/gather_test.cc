#include "framework/comm/gather.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/base/str_cat.h"
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

TEST(Gather, FindsTheFirstRankWithAnotherTextThanRank0) {
  const auto errors = RunOnThreadRanks(4, {.seed = 2}, [](Communicator* own) {
    const int32_t rank = own->world().rank;
    EXPECT_FALSE(FindDisagreement(own, "equal"));
    const auto found = FindDisagreement(own, rank < 2 ? "a" : StrCat("b", rank));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->rank, "rank 2");
    EXPECT_EQ(found->text, "b2");
    EXPECT_EQ(found->of_first, "a");
  });
  EXPECT_THAT(errors, Each(""));
}

TEST(Gather, NamesTheFirstLineThatDiffers) {
  const auto difference = [](const std::string& text, const std::string& expected) {
    const LineDifference first = FirstDifferentLine(text, expected);
    return StrCat(first.line, ": ", first.found, ", ", first.expected);
  };
  EXPECT_EQ(difference("a\nb\nc", "a\nx\nc"), "1: \"b\", \"x\"");
  EXPECT_EQ(difference("a\n", "a\nx\n"), "1: missing, \"x\"");
  EXPECT_EQ(difference("a\nx\n", "a"), "1: \"x\", missing");
  EXPECT_EQ(difference("a", "a"), "1: missing, missing");
}

TEST(Gather, WorksWithoutOtherRanks) {
  EXPECT_EQ(RankCount(nullptr), 1);
  EXPECT_THAT(GatherNumbers(nullptr, 3), ElementsAre(3));
  EXPECT_EQ(MaxOverRanks(nullptr, 3), 3);
  EXPECT_THAT(GatherTexts(nullptr, "abc"), ElementsAre("abc"));
  EXPECT_FALSE(FindDisagreement(nullptr, "abc"));
}

}  // namespace
}  // namespace skiff
