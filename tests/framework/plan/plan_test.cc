#include "framework/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/base/error.h"
#include "tests/framework/executor/lowered_plan.h"
#include "tests/harness/foreign_locale.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

using PlanTest = tiny::LoweredPlanTest;

TEST_F(PlanTest, IsPrintedALineAnInstruction) {
  EXPECT_EQ(PrintPlan(plan_),
            "0: a#1 float32[2] = tiny_scale(x#0 float32[2] @feed)\n"
            "1: b#2 float32[2] = tiny_copy(a#1 float32[2])\n"
            "2: w#4 float32[2] @scope = tiny_sgd(w#3 float32[2] @scope, b#2 float32[2])\n"
            "3: y#5 float32[2] = tiny_add(b#2 float32[2], b#2 float32[2])\n"
            "4: idle#6 float32[2] = tiny_add(y#5 float32[2], b#2 float32[2])\n"
            "fetch y#5 float32[2], a#1 float32[2]\n");
}

TEST_F(PlanTest, IsPrintedWithWhatPassesAndStorageSay) {
  plan_[ValueId(1)].offset = 64;
  plan_[ValueId(2)].alias_of = ValueId(1);
  plan_[ValueId(5)].meta.layout = Layout::Blocked(16);
  plan_.instructions[1].kind = InstructionKind::kCopy;
  plan_.instructions[4].outputs = {ValueId()};
  plan_.max_live_bytes = 8;
  plan_.planned_bytes = 72;
  plan_.unshared_bytes = 100;
  plan_.contiguous = {{.values = {ValueId(1), ValueId(5)}, .alignment_bytes = 4}, {.values = {}}};
  const std::string text = PrintPlan(plan_);
  EXPECT_THAT(text, HasSubstr("\ncontiguous, aligned to 4 bytes: a#1 float32[2] @64, y#5 "));
  EXPECT_THAT(text, HasSubstr("\n1: b#2 float32[2] =#1 = copy(a#1 float32[2] @64)\n"));
  EXPECT_THAT(text, HasSubstr("\n4: @EMPTY@ = tiny_add("));
  EXPECT_THAT(text,
              HasSubstr(StrCat("\n3: y#5 float32[2] ", plan_[ValueId(5)].meta.layout, " = ")));
  EXPECT_THAT(text, EndsWith("\nmax live 8 bytes, planned 72, without reuse 100\n"));
}

TEST_F(PlanTest, IsPrintedTheSameInAForeignLocale) {
  plan_[ValueId(1)].offset = 1234567;
  plan_.unshared_bytes = plan_.planned_bytes = 12345678;
  const std::string text = PrintPlan(plan_);
  EXPECT_THAT(text, HasSubstr(" @1234567\n"));
  const ForeignLocale locale(ForeignLocale::kCpp);
  EXPECT_EQ(PrintPlan(plan_), text);
}

TEST_F(PlanTest, MakesInstructionsOfSeveralArgumentsASlot) {
  OpDef def;
  def.type = "pairs";
  def.inputs = {{.name = "X", .duplicable = true}, {.name = "Like", .shape_only = true}};
  def.outputs = {{.name = "Out", .duplicable = true}};
  const ValueId x(0), a(1), w(3), y(5), idle(6);
  const Instruction made =
      MakeInstruction(&plan_, def, plan_.instructions[3], {},
                      {{"Like", w}, {"X", a}, {"X", x}, {"Like", {}}}, {{"Out", y}, {"Out", idle}});
  EXPECT_THAT(made.inputs, ElementsAre(a, x, w));
  EXPECT_THAT(made.reads_data, ElementsAre(true, true, false));
  EXPECT_THAT(made.outputs, ElementsAre(y, idle));
  EXPECT_THAT(made.op->Input("X"), ElementsAre("a", "x"));
  EXPECT_EQ(made.OutputIn("Out", 1), idle);
  EXPECT_FALSE(made.OutputIn("Out", 2));
}

}  // namespace
}  // namespace skiff
