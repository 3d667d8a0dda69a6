// Which mistakes in fusions are found, and what their messages say.
#include "framework/transpiler/fusion_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/transpiler/fusion_list.h"
#include "tests/framework/executor/tiny_ops.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class FusionCheckTest : public ::testing::Test {
 protected:
  FusionCheckTest() { tiny::RegisterTinyOps(registry_); }

  std::string ErrorOf(const std::vector<Fusion>& fusions) const {
    return InvalidArgumentText([&] { CheckFusions(registry_, fusions); });
  }
  std::string ErrorOf(const Fusion& fusion) const { return ErrorOf(std::vector{fusion}); }

  OpRegistry registry_;
};

Fusion CopyAndScale() {
  return {.before = R"({Out: [a]} = tiny_copy(X: [x])
                       {Out: [b]} = tiny_scale(X: [a]))",
          .after = {{.op = "{Out: [b]} = tiny_scale(X: [x])", .at = "b"}}};
}

Fusion Gradient() {
  return {.gradient_of = "b",
          .before = "{Out: [c]} = tiny_add(X: [b], Y: [d])",
          .after = {{.op = "{Out: [c]} = tiny_add(X: [d], Y: [x])", .at = "c"}}};
}

TEST_F(FusionCheckTest, AcceptsNamesOfThePatternAndOfTheForwardFusion) {
  EXPECT_NO_THROW(CheckFusions(registry_, {CopyAndScale(), Gradient()}));
}

TEST_F(FusionCheckTest, AListIsCheckedForEachRegistry) {
  const FusionList right = {CopyAndScale(), Gradient()};
  EXPECT_EQ(right.CheckedFor(registry_).size(), 2u);
  Fusion fusion = CopyAndScale();
  fusion.before = Pattern("{Out: [b]} = tiny_scale(Y: [x])");
  const FusionList wrong = {CopyAndScale(), fusion};
  // This registry has none of the ops.
  const OpRegistry empty;
  EXPECT_EQ(wrong.CheckedFor(empty).size(), 2u);
  for (int call = 0; call < 2; ++call) {
    EXPECT_THAT(InvalidArgumentText([&] { wrong.CheckedFor(registry_); }),
                HasSubstr("fusion 1: tiny_scale has no input \"Y\""));
  }
}

TEST_F(FusionCheckTest, RefusesASlotThatTheOpLacks) {
  Fusion fusion = CopyAndScale();
  fusion.before = Pattern("{Out: [b]} = tiny_scale(Y: [x])");
  EXPECT_THAT(ErrorOf(fusion), HasSubstr("tiny_scale has no input \"Y\""));
  fusion.before = Pattern("{Y: [b]} = tiny_scale(X: [x])");
  EXPECT_THAT(ErrorOf(fusion), HasSubstr("tiny_scale has no output \"Y\""));
  fusion = CopyAndScale();
  fusion.after[0].op = Pattern("{Out: [b]} = tiny_scale(Y: [x])");
  EXPECT_THAT(ErrorOf(fusion), HasSubstr("tiny_scale has no input \"Y\""));
}

TEST_F(FusionCheckTest, RefusesAnAttributeThatTheOpLacks) {
  Fusion fusion = CopyAndScale();
  fusion.before = Pattern("{Out: [b]} = tiny_scale(X: [x]) {facter = 2.0}");
  EXPECT_THAT(ErrorOf(fusion), HasSubstr("tiny_scale has no attribute \"facter\""));
}

TEST_F(FusionCheckTest, LooksAtNoSlotsOfAnUnknownOp) {
  Fusion fusion = CopyAndScale();
  fusion.after[0].op = Pattern("{Some: [b]} = tiny_unknown(Other: [x])");
  EXPECT_NO_THROW(CheckFusions(registry_, {fusion}));
}

TEST_F(FusionCheckTest, RefusesANameThatNoPatternHas) {
  Fusion fusion = CopyAndScale();
  fusion.after[0].op = Pattern("{Out: [b]} = tiny_scale(X: [z])");
  EXPECT_THAT(ErrorOf({CopyAndScale(), fusion}),
              AllOf(HasSubstr("fusion 1"), HasSubstr("there is no \"z\"; there are: a, b, x")));
}

TEST_F(FusionCheckTest, WantsOutputsWhereAnOpIsMeant) {
  const auto error_of = [&](auto set) {
    Fusion fusion = CopyAndScale();
    set(&fusion);
    return ErrorOf(fusion);
  };
  EXPECT_THAT(error_of([](Fusion* f) { f->after[0].at = "x"; }),
              HasSubstr("at: there is no \"x\"; there are: a, b"));
  EXPECT_THAT(error_of([](Fusion* f) { f->after[0].origin = "x"; }), HasSubstr("origin: "));
  EXPECT_THAT(error_of([](Fusion* f) { f->after[0].arguments_of = "x"; }),
              HasSubstr("arguments_of: "));
  EXPECT_THAT(error_of([](Fusion* f) { f->after[0].attributes_of = {"x"}; }),
              HasSubstr("attributes_of: "));
  EXPECT_THAT(error_of([](Fusion* f) { f->after[0].if_read = {"a"}; }),
              HasSubstr("if_read: there is no \"a\"; there are: b"));
}

TEST_F(FusionCheckTest, HasReadersReadOnlyWhatIsMade) {
  Fusion fusion = CopyAndScale();
  fusion.instead = {{"a", "b"}};
  EXPECT_NO_THROW(CheckFusions(registry_, {fusion}));
  fusion.instead = {{"x", "b"}};
  EXPECT_THAT(ErrorOf(fusion), HasSubstr("instead: there is no \"x\""));
  fusion.instead = {{"b", "a"}};
  EXPECT_THAT(ErrorOf(fusion), HasSubstr("instead: there is no \"a\""));
}

TEST_F(FusionCheckTest, WantsAForwardFusionBeforeItsGradient) {
  const std::string lacks = "gradient_of, in the fusions before: there is no \"b\"";
  EXPECT_THAT(ErrorOf(Gradient()), HasSubstr(lacks));
  EXPECT_THAT(ErrorOf({Gradient(), CopyAndScale()}), HasSubstr(lacks));
  Fusion gradient = Gradient();
  gradient.gradient_of = "a";
  EXPECT_THAT(ErrorOf({CopyAndScale(), gradient}), HasSubstr("gradient_of: there is no \"a\""));
}

TEST_F(FusionCheckTest, WantsOneOpToMake) {
  Fusion fusion = CopyAndScale();
  fusion.after[0].op = fusion.before;
  EXPECT_THAT(ErrorOf(fusion), HasSubstr("expected one op to make, got 2"));
}

}  // namespace
}  // namespace skiff
