#include "framework/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/framework/executor/lowered_plan.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;

using PlanTest = tiny::LoweredPlanTest;

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
