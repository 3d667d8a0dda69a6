#include "framework/command_line/argument_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace skiff {
namespace {

using ::testing::ElementsAre;

TEST(ShellCommand, QuotesWhatAShellWouldTakeApart) {
  EXPECT_EQ(ShellCommand({"train", "--data=mnist:a b", "it's"}),
            "train '--data=mnist:a b' 'it'\\''s'");
}

TEST(SplitNames, LeavesEmptyPartsOut) {
  EXPECT_THAT(SplitNames("a,,b,"), ElementsAre("a", "b"));
  EXPECT_TRUE(SplitNames("").empty());
}

}  // namespace
}  // namespace skiff
