#include "framework/text/hold_back.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/text/classification_source.h"
#include "tests/harness/temp_directory.h"

namespace skiff::text {
namespace {

using ::testing::ElementsAre;

TEST(HoldBackLast, TakesTheEndOfAFile) {
  std::vector<int> examples = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  EXPECT_THAT(HoldBackLast(&examples, 0.2, "file"), ElementsAre(9, 10));
  EXPECT_THAT(examples, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(HoldBackLast(&examples, 0.01, "file"), ElementsAre(8));
  ExpectError([&] { HoldBackLast(&examples, 1, "file"); }, ErrorCode::kInvalidArgument,
              "file: cannot hold back a share of 1 of 7 examples: one has to be left, and one held "
              "back");
  ExpectError([&] { HoldBackLast(&examples, 0, "file"); }, ErrorCode::kInvalidArgument,
              "file: cannot hold back a share of 0 of 7 examples: one has to be left, and one held "
              "back");
}

TEST(HoldBackLastOfEachClass, TakesTheEndOfEachClassIfTheFileIsSorted) {
  std::vector<LabelledText> texts;
  for (int64_t i = 0; i < 40; ++i) texts.push_back({.label = i / 20, .text = std::to_string(i)});
  const std::vector<LabelledText> held_back = HoldBackLastOfEachClass(&texts, 0.1, "file");
  std::vector<std::string> names;
  for (const LabelledText& text : held_back) names.push_back(text.text);
  EXPECT_THAT(names, ElementsAre("18", "19", "38", "39"));
  EXPECT_EQ(texts.size(), 36u);
  EXPECT_EQ(texts[18].text, "20");
}

}  // namespace
}  // namespace skiff::text
