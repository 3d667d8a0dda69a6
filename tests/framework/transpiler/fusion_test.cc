// How patterns match. tiny_both stands for whatever a fusion makes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/plan/plan_text.h"
#include "framework/transpiler/fusion_list.h"
#include "tests/framework/executor/tiny_ops.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class FusionTest : public ::testing::Test {
 protected:
  FusionTest() {
    tiny::RegisterTinyOps(registry_);
    OpDef both = registry_.Get("tiny_add");
    both.type = "tiny_both";
    both.inputs[1].dispensable = true;
    both.inputs.push_back(
        {.name = "Rest", .doc = "more operands", .duplicable = true, .dispensable = true});
    both.attrs = registry_.Get("tiny_scale").attrs;
    both.outputs.push_back({.name = "Kept", .doc = "another result", .dispensable = true});
    registry_.Add(both);
    registry_.AddKernel("tiny_both", registry_.Kernels("tiny_add")[0]);
  }

  Plan PlanOf(const std::string& instructions, const std::string& fetches) const {
    return ParsePlan(registry_, StrCat("plan cpu reuse=none {\nvalue x#0 float32 [2] @feed\n",
                                       "value y#1 float32 [2] @feed\n", instructions,
                                       "feed [x#0, y#1]\nfetch [", fetches, "]\n}"));
  }

  // Returns the text of the plan with these instructions after the fusions.
  std::string Fused(const std::vector<Fusion>& fusions, const std::string& instructions,
                    const std::string& fetches) const {
    Plan plan = PlanOf(instructions, fetches);
    ApplyFusions({.registry = registry_}, fusions, &plan);
    return PrintPlan(plan);
  }

  OpRegistry registry_;
};

Fusion CopyAndAdd() {
  return {.before = R"({Out: [a]} = tiny_copy(X: [x])
                       {Out: [b]} = tiny_add(X: [a], Y: [y]))",
          .after = {{.op = "{Out: [b]} = tiny_both(X: [x], Y: [y])", .at = "b"}}};
}

constexpr char kCopyAndAdd[] =
    "{Out: [a#2 float32 [2]]} = tiny_copy(X: [x#0])\n"
    "{Out: [b#3 float32 [2]]} = tiny_add(X: [a#2], Y: [y#1])\n";

TEST_F(FusionTest, MakesAnOpOfSeveral) {
  EXPECT_THAT(Fused({CopyAndAdd()}, kCopyAndAdd, "b#3"),
              HasSubstr("\n  {Out: [b#3 float32 [2]]} = tiny_both(X: [x#0], Y: [y#1])"));
}

TEST_F(FusionTest, FindsValuesByTheirSlots) {
  const std::string swapped =
      "{Out: [a#2 float32 [2]]} = tiny_copy(X: [x#0])\n"
      "{Out: [b#3 float32 [2]]} = tiny_add(X: [y#1], Y: [a#2])\n";
  EXPECT_THAT(Fused({CopyAndAdd()}, swapped, "b#3"), Not(HasSubstr("tiny_both")));
}

TEST_F(FusionTest, TakesEqualNamesForOneValue) {
  const Fusion twice = {.before = "{Out: [b]} = tiny_add(X: [a], Y: [a])",
                        .after = {{.op = "{Out: [b]} = tiny_both(X: [a])", .at = "b"}}};
  EXPECT_THAT(Fused({twice}, "{Out: [b#2 float32 [2]]} = tiny_add(X: [x#0], Y: [x#0])\n", "b#2"),
              HasSubstr("tiny_both(X: [x#0])"));
  EXPECT_THAT(Fused({twice}, "{Out: [b#2 float32 [2]]} = tiny_add(X: [x#0], Y: [y#1])\n", "b#2"),
              Not(HasSubstr("tiny_both")));
}

TEST_F(FusionTest, WantsTheAttributesOfThePattern) {
  const Fusion doubled = {.before = "{Out: [b]} = tiny_scale(X: [a]) {factor = 2.0}",
                          .after = {{.op = "{Out: [b]} = tiny_both(X: [a])", .at = "b"}}};
  const std::string scale = "{Out: [b#2 float32 [2]]} = tiny_scale(X: [x#0])";
  EXPECT_THAT(Fused({doubled}, StrCat(scale, " {factor = 2.0}\n"), "b#2"), HasSubstr("tiny_both"));
  EXPECT_THAT(Fused({doubled}, StrCat(scale, "\n"), "b#2"), Not(HasSubstr("tiny_both")));
}

TEST_F(FusionTest, AsksTheCondition) {
  Fusion fusion = CopyAndAdd();
  fusion.condition = [](const Match& match) { return match.plan[match["y"]].name == "y"; };
  EXPECT_THAT(Fused({fusion}, kCopyAndAdd, "b#3"), HasSubstr("tiny_both"));
  fusion.condition = [](const Match& match) { return match.plan[match["y"]].name == "z"; };
  EXPECT_THAT(Fused({fusion}, kCopyAndAdd, "b#3"), Not(HasSubstr("tiny_both")));
}

TEST_F(FusionTest, TellsTheConditionWhichOpsItHasFound) {
  Fusion fusion = CopyAndAdd();
  std::vector<std::string> types;
  fusion.condition = [&](const Match& match) {
    types = {match.MakerOf("a").op->type, match.ContextOfMaker("b").op().type};
    return true;
  };
  Fused({fusion}, kCopyAndAdd, "b#3");
  EXPECT_THAT(types, ElementsAre("tiny_copy", "tiny_add"));
}

TEST_F(FusionTest, ComparesTheAttributesOfTwoOps) {
  const auto have_same_attributes = [&](const std::string& a, const std::string& b) {
    Fusion fusion = CopyAndAdd();
    fusion.before = Pattern(StrCat("{Out: [a]} = ", a.substr(0, a.find('(')),
                                   "()\n{Out: [b]} = ", b.substr(0, b.find('(')), "()"));
    fusion.before.ops[1].SetInput("X", {"a"});
    fusion.after[0].op = Pattern("{Out: [b]} = tiny_both(X: [a])");
    bool have_same = false;
    fusion.condition = [&](const Match& match) {
      have_same = match.HaveSameAttributes("a", "b");
      return false;
    };
    Fused({fusion},
          StrCat("{Out: [a#2 float32 [2]]} = ", a, "\n{Out: [b#3 float32 [2]]} = ", b, "\n"),
          "b#3");
    return have_same;
  };
  const std::string thrice = "tiny_scale(X: [x#0]) {factor = 3.0}";
  EXPECT_TRUE(have_same_attributes(thrice, "tiny_scale(X: [a#2]) {factor = 3.0}"));
  EXPECT_FALSE(have_same_attributes(thrice, "tiny_scale(X: [a#2])"));
  EXPECT_TRUE(have_same_attributes("tiny_scale(X: [x#0])", "tiny_copy(X: [a#2])"));
  EXPECT_FALSE(have_same_attributes("tiny_fill() {shape = longs [2]}", "tiny_copy(X: [a#2])"));
}

TEST_F(FusionTest, WantsAllArgumentsOfASlotNamed) {
  const Fusion fusion = {.before = "{Out: [b]} = tiny_both(X: [x], Rest: [y])",
                         .after = {{.op = "{Out: [b]} = tiny_add(X: [x], Y: [y])", .at = "b"}}};
  const std::string both = "{Out: [b#2 float32 [2]]} = tiny_both(X: [x#0], Rest: ";
  EXPECT_THAT(Fused({fusion}, StrCat(both, "[y#1])\n"), "b#2"), HasSubstr("tiny_add"));
  EXPECT_THAT(Fused({fusion}, StrCat(both, "[y#1, x#0])\n"), "b#2"), Not(HasSubstr("tiny_add")));
}

TEST_F(FusionTest, LeavesOutAnArgumentThatTheOpLacks) {
  const Fusion fusion = {
      .before = "{Out: [b]} = tiny_both(X: [x], Y: [y])",
      .after = {{.op = "{Out: [b]} = tiny_both(X: [x], Y: [y]) {factor = 2.0}", .at = "b"}}};
  EXPECT_THAT(Fused({fusion}, "{Out: [b#2 float32 [2]]} = tiny_both(X: [x#0])\n", "b#2"),
              HasSubstr("tiny_both(X: [x#0]) {factor = 2.0"));
}

TEST_F(FusionTest, AppliesFusionsInTheirOrder) {
  Fusion copy = CopyAndAdd();
  copy.before = Pattern("{Out: [a]} = tiny_copy(X: [x])");
  copy.after = {{.op = "{Out: [a]} = tiny_both(X: [x])", .at = "a"}};
  EXPECT_THAT(Fused({CopyAndAdd(), copy}, kCopyAndAdd, "b#3"),
              HasSubstr("tiny_both(X: [x#0], Y: [y#1])"));
  EXPECT_THAT(Fused({copy, CopyAndAdd()}, kCopyAndAdd, "b#3"), HasSubstr("tiny_add(X: [a#2]"));
}

TEST_F(FusionTest, FindsAnotherReaderOfAValue) {
  const Fusion readers = {.before = R"({Out: [a]} = tiny_copy(X: [x])
                   {Out: [c]} = tiny_scale(X: [a])
                   {Out: [b]} = tiny_add(X: [a], Y: [y]))",
                          .after = {{.op = "{Out: [c]} = tiny_both(X: [x])", .at = "c"},
                                    {.op = "{Out: [b]} = tiny_both(X: [x], Y: [y])", .at = "b"}}};
  const std::string scale = "{Out: [c#4 float32 [2]]} = tiny_scale(X: [a#2])\n";
  const std::string fused = Fused({readers}, StrCat(kCopyAndAdd, scale), "b#3, c#4");
  EXPECT_THAT(fused, HasSubstr("{Out: [c#4 float32 [2]]} = tiny_both(X: [x#0])"));
  EXPECT_THAT(fused, HasSubstr("{Out: [b#3 float32 [2]]} = tiny_both(X: [x#0], Y: [y#1])"));
}

TEST_F(FusionTest, LeavesOutAnOutputThatNobodyElseReads) {
  Fusion fusion = CopyAndAdd();
  fusion.after = {
      {.op = "{Out: [b], Kept: [a]} = tiny_both(X: [x], Y: [y])", .at = "b", .if_read = {"a"}}};
  EXPECT_THAT(Fused({fusion}, kCopyAndAdd, "b#3"), HasSubstr("{Out: [b#3 float32 [2]]} ="));
  EXPECT_THAT(Fused({fusion}, kCopyAndAdd, "b#3, a#2"), HasSubstr("Kept: [a#2 float32 [2]]} ="));
}

TEST_F(FusionTest, GivesTheOtherArgumentsOfAnOp) {
  Fusion fusion = CopyAndAdd();
  fusion.after = {{.op = "{Out: [b]} = tiny_both(X: [x])", .at = "b", .arguments_of = "b"}};
  EXPECT_THAT(Fused({fusion}, kCopyAndAdd, "b#3"), HasSubstr("tiny_both(X: [x#0], Y: [y#1])"));
}

TEST_F(FusionTest, GivesTheAttributesOfTheOps) {
  const Fusion fusion = {
      .before = R"({Out: [a]} = tiny_scale(X: [x])
                                      {Out: [b]} = tiny_copy(X: [a]))",
      .after = {{.op = "{Out: [b]} = tiny_both(X: [x])", .at = "b", .attributes_of = {"a", "b"}}}};
  const std::string ops =
      "{Out: [a#2 float32 [2]]} = tiny_scale(X: [x#0]) {factor = 3.0}\n"
      "{Out: [b#3 float32 [2]]} = tiny_copy(X: [a#2])\n";
  EXPECT_THAT(Fused({fusion}, ops, "b#3"), HasSubstr("{factor = 3.0, op_role = 0}"));
}

TEST_F(FusionTest, GivesAllArgumentsOfASlot) {
  const Fusion fusion = {
      .before = "{Out: [b]} = tiny_both(X: [x])",
      .after = {
          {.op = "{Out: [b]} = tiny_both(X: [x]) {factor = 2.0}", .at = "b", .arguments_of = "b"}}};
  const std::string both =
      "{Out: [b#2 float32 [2]]} = tiny_both(X: [x#0], Rest: [y#1, x#0, y#1])\n";
  EXPECT_THAT(Fused({fusion}, both, "b#2"),
              HasSubstr("tiny_both(X: [x#0], Rest: [y#1, x#0, y#1]) {factor = 2.0"));
}

TEST_F(FusionTest, TakesAttributesOfThePatternThenComputedOnesThenThoseOfOps) {
  Fusion fusion = {.before = R"({Out: [a]} = tiny_scale(X: [x])
                                {Out: [b]} = tiny_copy(X: [a]))",
                   .after = {{.op = "{Out: [b]} = tiny_both(X: [x])",
                              .at = "b",
                              .attributes_of = {"a"},
                              .attributes = [](const Match&) {
                                return AttributeMap{{"factor", 4.0f}};
                              }}}};
  const std::string ops =
      "{Out: [a#2 float32 [2]]} = tiny_scale(X: [x#0]) {factor = 3.0}\n"
      "{Out: [b#3 float32 [2]]} = tiny_copy(X: [a#2])\n";
  EXPECT_THAT(Fused({fusion}, ops, "b#3"), HasSubstr("{factor = 4.0, op_role = 0}"));
  fusion.after[0].op = Pattern("{Out: [b]} = tiny_both(X: [x]) {factor = 5.0}");
  EXPECT_THAT(Fused({fusion}, ops, "b#3"), HasSubstr("{factor = 5.0, op_role = 0}"));
}

TEST_F(FusionTest, HasTheRoleOfItsOrigin) {
  Fusion fusion = CopyAndAdd();
  const std::string ops =
      "{Out: [a#2 float32 [2]]} = tiny_copy(X: [x#0]) {op_role = 1}\n"
      "{Out: [b#3 float32 [2]]} = tiny_add(X: [a#2], Y: [y#1])\n";
  EXPECT_THAT(Fused({fusion}, ops, "b#3"), HasSubstr("{op_role = 0}"));
  fusion.after[0].origin = "a";
  EXPECT_THAT(Fused({fusion}, ops, "b#3"), HasSubstr("{op_role = 1}"));
}

// The scale stands for the gradient of the first two.
TEST_F(FusionTest, FusesAGradientWhereItsForwardOpsWere) {
  const std::vector<Fusion> fusions = {
      CopyAndAdd(),
      {.gradient_of = "b",
       .before = "{Out: [c]} = tiny_scale(X: [b])",
       .after = {{.op = "{Out: [c]} = tiny_both(X: [b], Y: [y])", .at = "c"}}}};
  const std::string scale = "{Out: [c#4 float32 [2]]} = tiny_scale(X: [b#3])\n";
  EXPECT_THAT(Fused(fusions, StrCat(kCopyAndAdd, scale), "c#4"),
              HasSubstr("tiny_both(X: [b#3], Y: [y#1])"));
  EXPECT_THAT(Fused(fusions, StrCat(kCopyAndAdd, scale), "c#4, a#2"),
              Not(HasSubstr("tiny_both(X: [b#3]")));
}

TEST_F(FusionTest, FusesNoGradientOfOtherValues) {
  const std::vector<Fusion> fusions = {
      CopyAndAdd(),
      {.gradient_of = "b",
       .before = "{Out: [c]} = tiny_add(X: [b], Y: [y])",
       .after = {{.op = "{Out: [c]} = tiny_both(X: [b])", .at = "c"}}}};
  const std::string gradient = "{Out: [c#4 float32 [2]]} = tiny_add(X: [b#3], Y: ";
  EXPECT_THAT(Fused(fusions, StrCat(kCopyAndAdd, gradient, "[y#1])\n"), "c#4"),
              HasSubstr("tiny_both(X: [b#3])"));
  EXPECT_THAT(Fused(fusions, StrCat(kCopyAndAdd, gradient, "[x#0])\n"), "c#4"),
              HasSubstr("tiny_add(X: [b#3], Y: [x#0])"));
}

TEST_F(FusionTest, HasReadersReadAnotherValueInstead) {
  Fusion fusion = CopyAndAdd();
  fusion.instead = {{"a", "b"}};
  const std::string scale = "{Out: [c#4 float32 [2]]} = tiny_scale(X: [a#2])\n";
  EXPECT_THAT(Fused({fusion}, StrCat(kCopyAndAdd, scale), "c#4"),
              HasSubstr("tiny_scale(X: [b#3])"));
}

TEST_F(FusionTest, ReadsNothingInsteadOfAValueThatTheOpsLack) {
  const Fusion fusion = {.before = "{Out: [b], Kept: [k]} = tiny_both(X: [x])",
                         .after = {{.op = "{Out: [b]} = tiny_copy(X: [x])", .at = "b"}},
                         .instead = {{"k", "b"}}};
  EXPECT_THAT(Fused({fusion}, "{Out: [b#2 float32 [2]]} = tiny_both(X: [x#0])\n", "b#2"),
              HasSubstr("tiny_copy"));
}

TEST_F(FusionTest, FusesNothingIfTheValueToReadInsteadIsAbsent) {
  const Fusion fusion = {.before = "{Out: [b], Kept: [k]} = tiny_both(X: [x])",
                         .after = {{.op = "{Out: [k]} = tiny_copy(X: [x])", .at = "b"}},
                         .instead = {{"b", "k"}}};
  EXPECT_THAT(Fused({fusion}, "{Out: [b#2 float32 [2]]} = tiny_both(X: [x#0])\n", "b#2"),
              Not(HasSubstr("tiny_copy")));
}

TEST_F(FusionTest, KeepsNoOpOfARefusedFusion) {
  Plan plan = PlanOf(kCopyAndAdd, "b#3, a#2");
  ApplyFusions({.registry = registry_}, {CopyAndAdd()}, &plan);
  const size_t op_count = PlanOf(kCopyAndAdd, "b#3, a#2").made_ops.size();
  EXPECT_EQ(plan.made_ops.size(), op_count);
}

TEST_F(FusionTest, RefusesAMisspeltName) {
  Fusion fusion = CopyAndAdd();
  fusion.after[0].op = Pattern("{Out: [b]} = tiny_both(X: [x], Y: [z])");
  EXPECT_THROW(Fused({fusion}, kCopyAndAdd, "b#3"), Error);
}

TEST_F(FusionTest, PassesOverOpsThatTheRegistryLacks) {
  Fusion fusion = CopyAndAdd();
  fusion.after[0].op = Pattern("{Out: [b]} = tiny_unknown(X: [x])");
  EXPECT_THAT(Fused({fusion}, kCopyAndAdd, "b#3"), HasSubstr("tiny_add"));
}

TEST_F(FusionTest, RefusesATextThatIsNoPattern) {
  EXPECT_THROW(Pattern("tiny_copy and tiny_add"), Error);
  EXPECT_THROW(Pattern(""), Error);
  EXPECT_THROW(Pattern("{Out: [a]} = tiny_copy(X: [x]) } block 1 {"), Error);
}

}  // namespace
}  // namespace skiff
