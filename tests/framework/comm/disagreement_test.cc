#include "framework/comm/disagreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "framework/base/str_cat.h"
#include "tests/harness/thread_ranks.h"

namespace skiff {
namespace {

using ::testing::Each;

TEST(Disagreement, IsOfTheFirstRankWithAnotherTextThanRank0) {
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

TEST(LineDifference, NamesTheFirstLineThatDiffers) {
  const auto difference = [](const std::string& text, const std::string& expected) {
    const LineDifference first = FirstDifferentLine(text, expected);
    return StrCat(first.line, ": ", first.found, ", ", first.expected);
  };
  EXPECT_EQ(difference("a\nb\nc", "a\nx\nc"), "1: \"b\", \"x\"");
  EXPECT_EQ(difference("a\n", "a\nx\n"), "1: missing, \"x\"");
  EXPECT_EQ(difference("a\nx\n", "a"), "1: \"x\", missing");
  EXPECT_EQ(difference("a", "a"), "1: missing, missing");
}

TEST(Disagreement, NeedsOtherRanks) { EXPECT_FALSE(FindDisagreement(nullptr, "abc")); }

}  // namespace
}  // namespace skiff
