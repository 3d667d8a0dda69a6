#include "framework/io/name_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::HasSubstr;

RuledName Rule(const std::vector<NameRule>& rules, const std::string& name) {
  return ApplyRules(rules, {name})[0];
}

TEST(NameRules, ChangeWholeNamesOnly) {
  const std::vector<NameRule> rules = {{.pattern = R"(layer\.(\d+)\.w)", .to = "layer_$1_w"}};
  EXPECT_EQ(Rule(rules, "layer.12.w").name, "layer_12_w");
  EXPECT_EQ(Rule(rules, "net.layer.12.w").name, "net.layer.12.w");
}

TEST(NameRules, SeeWhatTheOnesBeforeHaveMade) {
  const std::vector<NameRule> rules = {
      {.pattern = R"(bert\.(.*))", .to = "$1"},
      {.pattern = R"((.*)\.gamma)", .to = "$1.weight"},
      {.pattern = R"((.*)\.weight)", .to = "$1_w", .change = NameChange::kTranspose}};
  const RuledName ruled = Rule(rules, "bert.norm.gamma");
  EXPECT_EQ(ruled.name, "norm_w");
  EXPECT_TRUE(ruled.transpose);
  EXPECT_FALSE(ruled.drop || ruled.tie);
}

TEST(NameRules, TwoTranspositionsUndoEachOther) {
  const NameRule transpose{.pattern = "(.*)", .to = "$1", .change = NameChange::kTranspose};
  EXPECT_FALSE(Rule({transpose, transpose}, "a").transpose);
}

TEST(NameRules, LeaveDroppedNamesAsTheyAre) {
  const RuledName ruled =
      Rule({{.pattern = "a", .change = NameChange::kDrop}, {.pattern = "a", .to = "b"}}, "a");
  EXPECT_TRUE(ruled.drop);
  EXPECT_EQ(ruled.name, "a");
}

TEST(NameRules, RefuseWhatIsNoExpression) {
  EXPECT_THAT(InvalidArgumentText([] { Rule({{.pattern = "("}}, "a"); }),
              HasSubstr("\"(\" is no regular expression: "));
  EXPECT_EQ(InvalidArgumentText([] { Rule({}, std::string(1001, 'a')); }),
            "a tensor's name has 1001 bytes, expected at most 1000");
}

TEST(NameRules, OfATextEndInTheirLastEqualsSign) {
  const std::vector<NameRule> rules = ParseNameRules("(?=a)(.*)=b$1;c=");
  ASSERT_EQ(rules.size(), 2u);
  EXPECT_EQ(rules[0].pattern, "(?=a)(.*)");
  EXPECT_EQ(rules[0].to, "b$1");
  EXPECT_EQ(rules[1].to, "");
  EXPECT_TRUE(ParseNameRules("").empty());
  EXPECT_EQ(InvalidArgumentText([] { ParseNameRules("a"); }),
            "a rule for names: found \"a\", expected REGEX=TO");
  EXPECT_THAT(InvalidArgumentText([] { ParseNameRules("=b"); }), HasSubstr("found \"=b\""));
}

}  // namespace
}  // namespace skiff
