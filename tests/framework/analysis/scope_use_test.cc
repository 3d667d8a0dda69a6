#include "framework/analysis/scope_use.h"

#include <gtest/gtest.h>

#include "tests/framework/executor/lowered_plan.h"

namespace skiff {
namespace {

// Instruction 2 reads w and writes it.
using ScopeUseTest = tiny::LoweredPlanTest;

constexpr ValueId kA(1);
constexpr ValueId kW(3);
constexpr ValueId kUpdatedW(4);

TEST_F(ScopeUseTest, FindsWritesOfAVariableByAnyOfItsValues) {
  EXPECT_TRUE(WritesScopeOf(plan_, {kA, kW}, 0, 5));
  EXPECT_TRUE(WritesScopeOf(plan_, {kUpdatedW}, 2, 3));
  EXPECT_FALSE(WritesScopeOf(plan_, {kW}, 0, 2));
  EXPECT_FALSE(WritesScopeOf(plan_, {kW}, 3, 5));
}

TEST_F(ScopeUseTest, FindsReadsOfAVariableByAnyOfItsValues) {
  EXPECT_TRUE(ReadsScopeOf(plan_, {kUpdatedW}, 0, 5));
  EXPECT_FALSE(ReadsScopeOf(plan_, {kUpdatedW}, 0, 2));
}

TEST_F(ScopeUseTest, PassesOverWhatIsNotInTheScope) {
  EXPECT_FALSE(WritesScopeOf(plan_, {kA, ValueId()}, 0, 5));
  EXPECT_FALSE(ReadsScopeOf(plan_, {kA, ValueId()}, 0, 5));
}

TEST_F(ScopeUseTest, LooksAtOneInstruction) {
  EXPECT_TRUE(WritesScopeOf(plan_, {kW}, plan_.instructions[2]));
  EXPECT_TRUE(ReadsScopeOf(plan_, {kUpdatedW}, plan_.instructions[2]));
  EXPECT_FALSE(WritesScopeOf(plan_, {kW}, plan_.instructions[1]));
  EXPECT_FALSE(ReadsScopeOf(plan_, {kW}, plan_.instructions[1]));
}

TEST_F(ScopeUseTest, RunsAllIterationsBetweenTheHalvesOfABody) {
  OpDef boundary;
  boundary.type = "loop_boundary";
  plan_.instructions[4].def = &boundary;
  EXPECT_FALSE(WritesScopeOf(plan_, {kW}, 3, 4));
  EXPECT_TRUE(WritesScopeOf(plan_, {kW}, 3, 5));
  EXPECT_EQ(RunWith(plan_, 3, 5).begin, 0u);
  EXPECT_EQ(RunWith(plan_, 3, 4).begin, 3u);
}

}  // namespace
}  // namespace skiff
