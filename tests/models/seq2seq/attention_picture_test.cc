#include "models/seq2seq/attention_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace skiff::models {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

int64_t CountOf(std::string_view part, std::string_view text) {
  int64_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; ++at) ++count;
  return count;
}

Translation Small() {
  return {.text = "b a",
          .attention = {{0.25f, 0.75f, 0}, {1, 0, 0}},
          .source_tokens = {"a", " ", "<&>"},
          .target_tokens = {"b", "</s>"}};
}

TEST(DrawAttention, HasACellForEachPairOfTokens) {
  const std::string svg = DrawAttention(std::vector{Small()});
  EXPECT_THAT(svg, AllOf(HasSubstr("<svg xmlns"), HasSubstr("</svg>")));
  EXPECT_EQ(CountOf("fill-opacity", svg), 6);
  EXPECT_THAT(svg, HasSubstr("fill-opacity=\"0.750\"><title>b from ␣: 75.0 %</title>"));
}

TEST(DrawAttention, EscapesWhatIsMarkup) {
  const std::string svg = DrawAttention(std::vector{Small()});
  EXPECT_THAT(svg, AllOf(HasSubstr(">&lt;&amp;&gt;</text>"), HasSubstr(">&lt;/s&gt;</text>")));
  EXPECT_THAT(svg, Not(HasSubstr("<&>")));
}

TEST(DrawAttention, TurnsLongLabels) {
  Translation translation = Small();
  EXPECT_THAT(DrawAttention(std::vector{translation}), HasSubstr("rotate(-90)"));
  translation.source_tokens = {"a", "b", "é"};
  EXPECT_THAT(DrawAttention(std::vector{translation}), Not(HasSubstr("rotate")));
}

TEST(DrawAttention, PutsTablesBelowEachOther) {
  const std::string one = DrawAttention(std::vector{Small()});
  const std::string three = DrawAttention(std::vector{Small(), Translation{}, Small()});
  EXPECT_EQ(CountOf("fill-opacity", three), 12);
  EXPECT_THAT(one, HasSubstr("translate(0 0)"));
  EXPECT_EQ(CountOf("translate(0 ", three), 2);
  // The second one begins where the first one ends.
  const size_t begin = one.find("height=\"") + 8;
  const std::string height = one.substr(begin, one.find('"', begin) - begin);
  EXPECT_THAT(three, HasSubstr("translate(0 " + height + ")"));
}

}  // namespace
}  // namespace skiff::models
