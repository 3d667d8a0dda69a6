// Which replacements leave what the plan around them computes as it was. The plans have a tiny_copy
// and a tiny_add of its result; a tiny_both is to take their place.
#include "framework/transpiler/plan_rewrite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/plan/plan_text.h"
#include "tests/framework/executor/tiny_ops.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;

constexpr char kCopy[] = "{Out: [a#2 float32 [2]]} = tiny_copy(X: [x#0])\n";
constexpr char kCopyOfW[] = "{Out: [a#2 float32 [2]]} = tiny_copy(X: [w#1])\n";
constexpr char kAdd[] = "{Out: [b#3 float32 [2]]} = tiny_add(X: [a#2], Y: [x#0])\n";
constexpr ValueId kX(0);
constexpr ValueId kW(1);
constexpr ValueId kA(2);
constexpr ValueId kB(3);
// Another definition of the variable w.
constexpr char kWriteW[] =
    "{ParamOut: [w#4 float32 [2] persistable @scope]} = tiny_sgd(Param: [w#1], Grad: [x#0])\n";

class PlanRewriteTest : public ::testing::Test {
 protected:
  PlanRewriteTest() {
    tiny::RegisterTinyOps(registry_);
    for (const char* type : {"tiny_both", "tiny_kernelless"}) {
      OpDef both = registry_.Get("tiny_add");
      both.type = type;
      registry_.Add(both);
    }
    OpDef rows = registry_.Get("tiny_add");
    rows.type = "tiny_add_rows";
    rows.attrs = {{.name = "axis", .type = AttrType::kInt, .default_value = -1, .doc = ""}};
    registry_.Add(rows);
    registry_.AddKernel("tiny_both", registry_.Kernels("tiny_add")[0]);
  }

  Plan PlanOf(const std::string& instructions, const std::string& fetches = "b#3") const {
    return ParsePlan(registry_, StrCat("plan cpu reuse=none {\nvalue x#0 float32 [2] @feed\n",
                                       "value w#1 float32 [2] persistable @scope\n", instructions,
                                       "feed [x#0]\nfetch [", fetches, "]\n}"));
  }

  static size_t IndexOf(const Plan& plan, std::string_view type) {
    const auto found = std::ranges::find_if(
        plan.instructions, [&](const Instruction& i) { return i.op->type == type; });
    return static_cast<size_t>(found - plan.instructions.begin());
  }

  // The copy and the addition replaced by an op, in the place of the one of type `at`, that reads
  // what they read and writes what the addition wrote.
  Replacement Both(Plan* plan, std::string_view at = "tiny_add",
                   std::string_view type = "tiny_both") const {
    const Instruction& copy = plan->instructions[IndexOf(*plan, "tiny_copy")];
    const Instruction& add = plan->instructions[IndexOf(*plan, "tiny_add")];
    Replacement replacement{.dropped = {IndexOf(*plan, "tiny_copy"), IndexOf(*plan, "tiny_add")}};
    replacement.made.emplace(IndexOf(*plan, at),
                             MakeInstruction(plan, registry_.Get(type), add, {},
                                             {{"X", copy.InputIn("X")}, {"Y", add.InputIn("Y")}},
                                             {{"Out", add.OutputIn("Out")}}));
    return replacement;
  }

  bool IsReplaced(Plan plan, std::string_view at = "tiny_add",
                  std::string_view type = "tiny_both") const {
    PlanRewrite rewrite(context_, &plan);
    return rewrite.TryReplace(Both(&plan, at, type));
  }

  // These instructions replaced by a tiny_both at `at`.
  Replacement Fused(Plan* plan, const std::set<size_t>& dropped, size_t at, ValueId x, ValueId y,
                    ValueId out) const {
    Replacement replacement{.dropped = dropped};
    replacement.made.emplace(
        at, MakeInstruction(plan, registry_.Get("tiny_both"), plan->instructions[at], {},
                            {{"X", x}, {"Y", y}}, {{"Out", out}}));
    return replacement;
  }

  static std::vector<std::string> TypesOf(const Plan& plan) {
    std::vector<std::string> types;
    for (const Instruction& instruction : plan.instructions) types.push_back(instruction.op->type);
    return types;
  }

  OpRegistry registry_;
  PassContext context_{.registry = registry_};
};

TEST_F(PlanRewriteTest, PutsAnOpInThePlaceOfOthers) {
  for (const char* at : {"tiny_copy", "tiny_add"}) {
    Plan plan = PlanOf(StrCat(kCopy, kAdd));
    PlanRewrite rewrite(context_, &plan);
    EXPECT_TRUE(rewrite.TryReplace(Both(&plan, at)));
    EXPECT_EQ(rewrite.Apply(), 1);
    EXPECT_THAT(TypesOf(plan), ElementsAre("tiny_both"));
  }
}

TEST_F(PlanRewriteTest, KeepsAValueThatSomebodyElseReads) {
  const std::string other = "{Out: [c#4 float32 [2]]} = tiny_scale(X: [a#2])\n";
  EXPECT_FALSE(IsReplaced(PlanOf(StrCat(kCopy, kAdd, other), "b#3, c#4")));
}

TEST_F(PlanRewriteTest, KeepsAValueThatIsFetched) {
  EXPECT_FALSE(IsReplaced(PlanOf(StrCat(kCopy, kAdd), "b#3, a#2")));
}

TEST_F(PlanRewriteTest, KeepsACheckpoint) {
  const std::string copy = "{Out: [a#2 float32 [2] checkpoint]} = tiny_copy(X: [x#0])\n";
  EXPECT_FALSE(IsReplaced(PlanOf(StrCat(copy, kAdd))));
}

TEST_F(PlanRewriteTest, KeepsAVariableOfTheScope) {
  const std::string copy = "{Out: [a#2 float32 [2] persistable @scope]} = tiny_copy(X: [x#0])\n";
  EXPECT_FALSE(IsReplaced(PlanOf(StrCat(copy, kAdd))));
}

TEST_F(PlanRewriteTest, ReadsAVariableBeforeItIsOverwritten) {
  const Plan overwritten = PlanOf(StrCat(kCopyOfW, kWriteW, kAdd));
  EXPECT_FALSE(IsReplaced(overwritten, "tiny_add"));
  EXPECT_TRUE(IsReplaced(overwritten, "tiny_copy"));
  EXPECT_TRUE(IsReplaced(PlanOf(StrCat(kCopyOfW, kAdd, kWriteW)), "tiny_add"));
}

TEST_F(PlanRewriteTest, ReadsWhatTheForwardInstructionsHaveRead) {
  const auto is_replaced = [&](Plan plan) {
    PlanRewrite rewrite(context_, &plan);
    Replacement replacement = Both(&plan);
    replacement.forward = {IndexOf(plan, "tiny_scale")};
    return rewrite.TryReplace(std::move(replacement));
  };
  const std::string scale = "{Out: [c#5 float32 [2]]} = tiny_scale(X: [w#4])\n";
  const std::string copy = "{Out: [a#2 float32 [2]]} = tiny_copy(X: [w#4])\n";
  const std::string again =
      "{ParamOut: [w#6 float32 [2] persistable @scope]} = tiny_sgd(Param: [w#4], Grad: [x#0])\n";
  EXPECT_TRUE(is_replaced(PlanOf(StrCat(kWriteW, scale, copy, kAdd), "b#3, c#5")));
  EXPECT_FALSE(is_replaced(PlanOf(StrCat(kWriteW, scale, again, copy, kAdd), "b#3, c#5")));
}

TEST_F(PlanRewriteTest, WritesAVariableAfterItsOldValueWasRead) {
  const std::string read = "{Out: [c#4 float32 [2]]} = tiny_scale(X: [w#1])\n";
  const std::string add =
      "{Out: [w#3 float32 [2] persistable @scope]} = tiny_add(X: [a#2], Y: [x#0])\n";
  EXPECT_FALSE(IsReplaced(PlanOf(StrCat(kCopy, read, add), "c#4"), "tiny_copy"));
  EXPECT_TRUE(IsReplaced(PlanOf(StrCat(kCopy, read, add), "c#4"), "tiny_add"));
  EXPECT_TRUE(IsReplaced(PlanOf(StrCat(read, kCopy, add), "c#4"), "tiny_copy"));
}

TEST_F(PlanRewriteTest, KeepsTheOrderOfWritesOfAVariable) {
  const std::string write = "{Out: [w#4 float32 [2] persistable @scope]} = tiny_scale(X: [x#0])\n";
  const std::string add =
      "{Out: [w#3 float32 [2] persistable @scope]} = tiny_add(X: [a#2], Y: [x#0])\n";
  EXPECT_FALSE(IsReplaced(PlanOf(StrCat(kCopy, write, add), ""), "tiny_copy"));
  EXPECT_TRUE(IsReplaced(PlanOf(StrCat(kCopy, write, add), ""), "tiny_add"));
}

TEST_F(PlanRewriteTest, StandsBehindTheWritersOfItsInputs) {
  const std::string operand = "{Out: [y#4 float32 [2]]} = tiny_scale(X: [x#0])\n";
  const std::string add = "{Out: [b#3 float32 [2]]} = tiny_add(X: [a#2], Y: [y#4])\n";
  EXPECT_FALSE(IsReplaced(PlanOf(StrCat(kCopy, operand, add)), "tiny_copy"));
  EXPECT_TRUE(IsReplaced(PlanOf(StrCat(operand, kCopy, add)), "tiny_copy"));
}

TEST_F(PlanRewriteTest, StandsBeforeTheReadersOfItsOutputs) {
  const auto is_replaced = [&](Plan plan) {
    PlanRewrite rewrite(context_, &plan);
    Replacement replacement = Both(&plan);
    replacement.made.begin()->second.outputs = {plan.instructions[0].outputs};
    return rewrite.TryReplace(std::move(replacement));
  };
  const std::string read = "{Out: [c#4 float32 [2]]} = tiny_scale(X: [a#2])\n";
  EXPECT_FALSE(is_replaced(PlanOf(StrCat(kCopy, read, kAdd), "c#4")));
  EXPECT_TRUE(is_replaced(PlanOf(StrCat(kCopy, kAdd, read), "c#4")));
}

TEST_F(PlanRewriteTest, MakesNoOpWithoutAKernel) {
  EXPECT_FALSE(IsReplaced(PlanOf(StrCat(kCopy, kAdd)), "tiny_add", "tiny_kernelless"));
}

TEST_F(PlanRewriteTest, KnowsNoOpWhoseKernelIsForced) {
  Plan plan = PlanOf(StrCat(kCopy, kAdd));
  EXPECT_TRUE(PlanRewrite(context_, &plan).Is(0, "tiny_copy"));
  context_.forced_kernels["tiny_copy"] = "plain";
  EXPECT_FALSE(PlanRewrite(context_, &plan).Is(0, "tiny_copy"));
  EXPECT_TRUE(PlanRewrite(context_, &plan).Is(1, "tiny_add"));
}

TEST_F(PlanRewriteTest, ReplacesNoOpWhoseKernelIsForced) {
  context_.forced_kernels["tiny_copy"] = "plain";
  EXPECT_FALSE(IsReplaced(PlanOf(StrCat(kCopy, kAdd))));
}

TEST_F(PlanRewriteTest, ReplacesNothingButOps) {
  Plan plan = PlanOf(StrCat(kCopy, kAdd));
  plan.instructions[0].kind = InstructionKind::kCopy;
  EXPECT_FALSE(IsReplaced(plan));
}

TEST_F(PlanRewriteTest, ReplacesAnInstructionOnce) {
  Plan plan = PlanOf(StrCat(kCopy, kAdd));
  PlanRewrite rewrite(context_, &plan);
  EXPECT_TRUE(rewrite.TryReplace(Both(&plan, "tiny_add")));
  EXPECT_FALSE(rewrite.TryReplace(Both(&plan, "tiny_copy")));
  EXPECT_FALSE(rewrite.Is(0, "tiny_copy"));
  EXPECT_EQ(rewrite.Apply(), 1);
}

TEST_F(PlanRewriteTest, ReplacesNoPartOfWhatBelongsTogether) {
  Plan plan = PlanOf(StrCat(kCopyOfW, kWriteW, kAdd));
  PlanRewrite rewrite(context_, &plan);
  Replacement part{.dropped = {IndexOf(plan, "tiny_add")}};
  part.made.emplace(IndexOf(plan, "tiny_add"), plan.instructions[IndexOf(plan, "tiny_add")]);
  EXPECT_FALSE(rewrite.TryReplace(Both(&plan)));
  EXPECT_FALSE(rewrite.TryReplace(part));
  EXPECT_TRUE(PlanRewrite(context_, &plan).TryReplace(part));
}

TEST_F(PlanRewriteTest, HasReadersReadAnotherValueInstead) {
  const auto replaced = [&](Plan plan) {
    PlanRewrite rewrite(context_, &plan);
    Replacement replacement = Both(&plan);
    replacement.instead[plan.instructions[IndexOf(plan, "tiny_copy")].outputs[0]] =
        plan.instructions[IndexOf(plan, "tiny_add")].outputs[0];
    if (rewrite.TryReplace(std::move(replacement))) rewrite.Apply();
    return plan;
  };
  const std::string read = "{Out: [c#4 float32 [2]]} = tiny_scale(X: [a#2])\n";
  const Plan plan = replaced(PlanOf(StrCat(kCopy, kAdd, read), "c#4"));
  ASSERT_THAT(TypesOf(plan), ElementsAre("tiny_both", "tiny_scale"));
  EXPECT_EQ(plan.instructions[1].inputs, plan.instructions[0].outputs);
  // The other value isn't there yet, or the first one is wanted itself.
  EXPECT_THAT(TypesOf(replaced(PlanOf(StrCat(kCopy, read, kAdd), "c#4"))),
              ElementsAre("tiny_copy", "tiny_scale", "tiny_add"));
  EXPECT_THAT(TypesOf(replaced(PlanOf(StrCat(kCopy, kAdd), "a#2"))),
              ElementsAre("tiny_copy", "tiny_add"));
  const std::string checkpoint = "{Out: [a#2 float32 [2] checkpoint]} = tiny_copy(X: [x#0])\n";
  EXPECT_THAT(TypesOf(replaced(PlanOf(StrCat(checkpoint, kAdd)))),
              ElementsAre("tiny_copy", "tiny_add"));
}

TEST_F(PlanRewriteTest, HasReadersReadOnlyWhatIsMade) {
  Plan plan = PlanOf(StrCat(kCopy, kAdd));
  const auto try_instead = [&](Replacement replacement, ValueId value, ValueId other) {
    replacement.instead = {{value, other}};
    PlanRewrite(context_, &plan).TryReplace(std::move(replacement));
  };
  EXPECT_NO_THROW(try_instead(Both(&plan), kA, kB));
  EXPECT_THROW(try_instead(Both(&plan), kA, kX), Error);
  EXPECT_THROW(try_instead(Both(&plan), kX, kB), Error);
  EXPECT_THROW(try_instead({.dropped = {0}}, kA, kB), Error);
}

// ---- A replacement is judged by the plan that those before it leave.

// The first replacement writes a later, the second one would read it earlier.
TEST_F(PlanRewriteTest, ReadsNoValueBeforeAnotherReplacementWritesIt) {
  Plan plan = PlanOf(
      "{Out: [a#2 float32 [2]]} = tiny_copy(X: [x#0])\n"
      "{Out: [c#3 float32 [2]]} = tiny_copy(X: [x#0])\n"
      "{Out: [b#4 float32 [2]]} = tiny_copy(X: [x#0])\n"
      "{Out: [d#5 float32 [2]]} = tiny_add(X: [a#2], Y: [c#3])\n",
      "d#5");
  const auto late = [&] { return Fused(&plan, {0, 2}, 2, kX, kX, kA); };
  const auto early = [&] { return Fused(&plan, {1, 3}, 1, kA, kX, ValueId(5)); };
  PlanRewrite late_first(context_, &plan);
  EXPECT_TRUE(late_first.TryReplace(late()));
  EXPECT_FALSE(late_first.TryReplace(early()));
  PlanRewrite early_first(context_, &plan);
  EXPECT_TRUE(early_first.TryReplace(early()));
  EXPECT_FALSE(early_first.TryReplace(late()));
}

// The first replacement reads w later, the second one would write it earlier.
TEST_F(PlanRewriteTest, WritesNoVariableBeforeAnotherReplacementReadsIt) {
  Plan plan = PlanOf(
      "{Out: [a#2 float32 [2]]} = tiny_copy(X: [w#1])\n"
      "{Out: [c#3 float32 [2]]} = tiny_copy(X: [x#0])\n"
      "{Out: [b#4 float32 [2]]} = tiny_add(X: [a#2], Y: [x#0])\n"
      "{Out: [w#5 float32 [2] persistable @scope]} = tiny_add(X: [c#3], Y: [x#0])\n",
      "b#4");
  const auto late = [&] { return Fused(&plan, {0, 2}, 2, kW, kX, ValueId(4)); };
  const auto early = [&] { return Fused(&plan, {1, 3}, 1, kX, kX, ValueId(5)); };
  PlanRewrite late_first(context_, &plan);
  EXPECT_TRUE(late_first.TryReplace(late()));
  EXPECT_FALSE(late_first.TryReplace(early()));
  PlanRewrite early_first(context_, &plan);
  EXPECT_TRUE(early_first.TryReplace(early()));
  EXPECT_FALSE(early_first.TryReplace(late()));
}

TEST_F(PlanRewriteTest, ReadsNoValueThatHasVanished) {
  const std::string read = "{Out: [c#4 float32 [2]]} = tiny_scale(X: [b#3])\n";
  Plan plan = PlanOf(StrCat(kCopy, kAdd, read), "c#4");
  PlanRewrite rewrite(context_, &plan);
  EXPECT_TRUE(rewrite.TryReplace(Both(&plan)));
  EXPECT_FALSE(rewrite.TryReplace(Fused(&plan, {2}, 2, kA, kB, ValueId(4))));
}

// The first replacement reads a, which the op in its place hasn't read.
TEST_F(PlanRewriteTest, KeepsAValueThatAnotherReplacementReads) {
  const std::string scale = "{Out: [c#4 float32 [2]]} = tiny_scale(X: [x#0])\n";
  Plan plan = PlanOf(StrCat(kCopy, scale, kAdd), "b#3, c#4");
  PlanRewrite rewrite(context_, &plan);
  EXPECT_TRUE(rewrite.MayVanish(kA, {2}));
  EXPECT_TRUE(rewrite.TryReplace(Fused(&plan, {1}, 1, kA, kX, ValueId(4))));
  EXPECT_FALSE(rewrite.MayVanish(kA, {2}));
  EXPECT_FALSE(rewrite.TryReplace(Both(&plan)));
  Replacement both = Both(&plan);
  both.instead = {{kA, kB}};
  EXPECT_FALSE(rewrite.TryReplace(std::move(both)));
}

TEST_F(PlanRewriteTest, ReadsWhatAnotherReplacementHasReadersReadInstead) {
  const std::string read = "{Out: [c#4 float32 [2]]} = tiny_scale(X: [a#2])\n";
  Plan plan = PlanOf(StrCat(kCopy, kAdd, read), "c#4");
  PlanRewrite rewrite(context_, &plan);
  Replacement both = Both(&plan);
  both.instead = {{kA, kB}};
  EXPECT_TRUE(rewrite.TryReplace(both));
  EXPECT_TRUE(rewrite.TryReplace(Fused(&plan, {2}, 2, kA, kX, ValueId(4))));
  EXPECT_EQ(rewrite.Apply(), 2);
  EXPECT_THAT(plan.instructions[1].inputs, ElementsAre(kB, kX));
}

// ---- What passes ask

TEST_F(PlanRewriteTest, SaysWhetherAValueMayVanish) {
  Plan plan = PlanOf(StrCat(kCopy, kAdd));
  const PlanRewrite rewrite(context_, &plan);
  EXPECT_TRUE(rewrite.MayVanish(ValueId(), {}));
  EXPECT_TRUE(rewrite.MayVanish(kA, {1}));
  EXPECT_FALSE(rewrite.MayVanish(kA, {0}));
  EXPECT_FALSE(rewrite.MayVanish(kB, {1}));  // fetched
  EXPECT_FALSE(rewrite.MayVanish(kW, {}));   // of the scope
  EXPECT_FALSE(rewrite.MayVanish(kX, {0, 1}));
}

TEST_F(PlanRewriteTest, CountsReadersOfAShapeOnlyIfAsked) {
  const std::string measure = "{Out: [c#4 float32 [2]]} = tiny_ones_like(X: [a#2])\n";
  Plan plan = PlanOf(StrCat(kCopy, kAdd, measure), "b#3, c#4");
  const PlanRewrite rewrite(context_, &plan);
  EXPECT_TRUE(rewrite.MayVanish(kA, {1}));
  EXPECT_FALSE(rewrite.MayVanishWithShape(kA, {1}));
  EXPECT_TRUE(rewrite.MayVanishWithShape(kA, {1, 2}));
  EXPECT_TRUE(rewrite.MayVanishWithShape(ValueId(), {}));
  EXPECT_TRUE(IsReplaced(plan));
}

TEST_F(PlanRewriteTest, KnowsAdditionsToRows) {
  const auto adds_to_rows = [&](const std::string& x, const std::string& y, int axis) {
    Plan plan =
        ParsePlan(registry_, StrCat("plan cpu reuse=none {\nvalue x#0 float32 ", x,
                                    " @feed\nvalue y#1 float32 ", y, " @feed\n{Out: [b#2 float32 ",
                                    x, "]} = tiny_add_rows(X: [x#0], Y: [y#1]) {axis = ", axis,
                                    "}\nfeed [x#0, y#1]\nfetch [b#2]\n}"));
    return PlanRewrite(context_, &plan).AddsToRows(plan.instructions[0]);
  };
  EXPECT_TRUE(adds_to_rows("[2, 3]", "[3]", -1));
  EXPECT_TRUE(adds_to_rows("[2, 3]", "[3]", 1));
  EXPECT_FALSE(adds_to_rows("[3, 3]", "[3]", 0));
  EXPECT_FALSE(adds_to_rows("[2, 3]", "[1]", -1));
  EXPECT_FALSE(adds_to_rows("[2, 3]", "[2, 3]", -1));
}

TEST_F(PlanRewriteTest, SaysWhetherAllThatIsWrittenIsInTheArena) {
  Plan plan = PlanOf(StrCat(kCopyOfW, kWriteW, kAdd));
  const PlanRewrite rewrite(context_, &plan);
  EXPECT_TRUE(rewrite.WritesArenaOnly(plan.instructions[0]));
  EXPECT_FALSE(rewrite.WritesArenaOnly(plan.instructions[1]));
}

TEST_F(PlanRewriteTest, WantsThePlaceOfADroppedInstruction) {
  Plan plan = PlanOf(StrCat(kCopy, kAdd));
  Replacement replacement = Both(&plan);
  replacement.made.emplace(2, replacement.made.at(1));
  EXPECT_THROW(PlanRewrite(context_, &plan).TryReplace(std::move(replacement)), Error);
}

}  // namespace
}  // namespace skiff
