#include "framework/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/framework/executor/lowered_plan.h"
#include "tests/harness/error_text.h"

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

TEST_F(PlanTest, RefusesValuesForSlotsThatTheDefinitionLacks) {
  OpDef def;
  def.type = "single";
  def.inputs = {{.name = "X"}};
  def.outputs = {{.name = "Out"}};
  const ValueId a(1), y(5);
  const auto make = [&](const SlotValues& inputs, const SlotValues& outputs) {
    MakeInstruction(&plan_, def, plan_.instructions[3], {}, inputs, outputs);
  };
  EXPECT_EQ(InvalidArgumentText([&] {
              make({{"X", a}, {"Y", a}}, {{"Out", y}});
            }),
            "single: value \"a\" is given for slot \"Y\", which the definition doesn't have");
  EXPECT_EQ(InvalidArgumentText([&] {
              make({{"X", a}}, {{"Out", y}, {"Mask", y}});
            }),
            "single: value \"y\" is given for slot \"Mask\", which the definition doesn't have");
  EXPECT_TRUE(plan_.made_ops.empty());
  // Passes list slots that only some definitions have, without a value for the others.
  make({{"X", a}, {"Y", {}}}, {{"Out", y}, {"Mask", {}}});
}

}  // namespace
}  // namespace skiff
