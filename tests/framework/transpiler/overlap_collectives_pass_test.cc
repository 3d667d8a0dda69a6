#include "framework/transpiler/overlap_collectives_pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "framework/analysis/verify_plan.h"
#include "framework/plan/plan_text.h"
#include "framework/transpiler/memory_reuse_pass.h"
#include "tests/framework/executor/tiny_ops.h"

namespace skiff {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class OverlapCollectivesPassTest : public ::testing::Test {
 protected:
  OverlapCollectivesPassTest() { tiny::RegisterTinyOps(registry_); }

  // The plan of these instructions after the pass. The value x#0 (a feed) is there.
  Plan Overlapped(const std::string& instructions, const std::string& fetches = "") {
    Plan plan = ParsePlan(registry_, "plan cpu reuse=none { value x#0 float32 [4] @feed " +
                                         instructions + " feed [x#0] fetch [" + fetches + "] }");
    report_ = OverlapCollectivesPass().Apply(context_, &plan);
    EXPECT_THAT(VerifyPlan(plan), IsEmpty());
    return plan;
  }

  // The same after memory_reuse.
  Plan Reused(const std::string& instructions, const std::string& fetches = "") {
    Plan plan = Overlapped(instructions, fetches);
    MemoryReusePass().Apply(context_, &plan);
    EXPECT_THAT(VerifyPlan(plan), IsEmpty());
    return plan;
  }

  static bool IsInPlaceOf(const Plan& plan, size_t value, size_t of) {
    return plan.StorageOf(ValueId(value)) == ValueId(of);
  }

  OpRegistry registry_;
  const PassContext context_{.registry = registry_, .memory = {.policy = ReusePolicy::kArena}};
  PassReport report_;
};

TEST_F(OverlapCollectivesPassTest, ReportsInstructionsAndWaits) {
  Overlapped(R"(
    {Out: [a#1 float32 [4]]} = tiny_exchange(X: [x#0])
    {Out: [b#2 float32 [4]]} = tiny_exchange(X: [x#0])
    {Out: [c#3 float32 [4]]} = tiny_add(X: [a#1], Y: [b#2]))");
  EXPECT_EQ(report_.changes, 2);
  EXPECT_EQ(report_.summary, "2 collective instructions beside the others, 1 waits for them");
}

TEST_F(OverlapCollectivesPassTest, KeepsTheOrderOfCollectivesThoughOneIsReadyEarlier) {
  const Plan plan = Overlapped(R"(
    {Out: [a#1 float32 [4]]} = tiny_copy(X: [x#0])
    {Out: [b#2 float32 [4]]} = tiny_exchange(X: [a#1])
    {Out: [c#3 float32 [4]]} = tiny_exchange(X: [x#0]))");
  EXPECT_EQ(plan.instructions[1].outputs[0], ValueId(2));
  EXPECT_EQ(plan.instructions[2].outputs[0], ValueId(3));
}

TEST_F(OverlapCollectivesPassTest, MovesNothingPastASideEffect) {
  const Plan plan = Overlapped(R"(
    {Out: [a#1 float32 [4]]} = tiny_copy(X: [x#0])
    {Out: [b#2 float32 [4]]} = tiny_meanwhile(X: [x#0])
    {Out: [c#3 float32 [4]]} = tiny_copy(X: [x#0])
    {Out: [d#4 float32 [4]]} = tiny_exchange(X: [a#1]))");
  EXPECT_EQ(plan.instructions[1].Name(), "tiny_meanwhile");
  EXPECT_EQ(plan.instructions[2].Name(), "tiny_exchange");
}

// A plan on a device, and an op that only the host can do: c_allreduce_rows.
TEST_F(OverlapCollectivesPassTest, LeavesWhatRunsElsewhereInTheMainStream) {
  Plan plan = ParsePlan(registry_, R"(plan "cuda:0" reuse=none {
    value x#0 float32 [4] place=cpu @feed
    {Out: [a#1 float32 [4] place=cpu]} = tiny_exchange(X: [x#0]) place=cpu
  })");
  OverlapCollectivesPass().Apply(context_, &plan);
  EXPECT_THAT(PrintPlan(plan), Not(HasSubstr("@comm")));
}

// Nobody knows its shape before it has ended.
TEST_F(OverlapCollectivesPassTest, LeavesWhatMakesItsOutputItselfInTheMainStream) {
  const Plan plan = Overlapped("{Out: [a#1 float32 [4] @made]} = tiny_exchange(X: [x#0])");
  EXPECT_THAT(PrintPlan(plan), Not(HasSubstr("@comm")));
}

// ---- memory_reuse, which follows

TEST_F(OverlapCollectivesPassTest, ACollectiveStillWorksInPlace) {
  const Plan plan = Reused(R"(
    {Out: [a#1 float32 [4]]} = tiny_copy(X: [x#0])
    {Out: [b#2 float32 [4]]} = tiny_copy(X: [a#1])
    {Out: [c#3 float32 [4]]} = tiny_exchange(X: [a#1])
    {Out: [d#4 float32 [4]]} = tiny_scale(X: [c#3]))",
                           "b#2");
  EXPECT_TRUE(IsInPlaceOf(plan, 3, 1)) << "once a is read elsewhere";
  EXPECT_TRUE(IsInPlaceOf(plan, 4, 1)) << "after the wait";
}

TEST_F(OverlapCollectivesPassTest, NothingIsWrittenOverWhatACollectiveStillReads) {
  const Plan plan = Reused(R"(
    {Out: [a#1 float32 [4]]} = tiny_copy(X: [x#0])
    {Out: [b#2 float32 [4]]} = tiny_exchange_copy(X: [a#1])
    {Out: [c#3 float32 [4]]} = tiny_scale(X: [a#1])
    {Out: [d#4 float32 [4]]} = tiny_add(X: [b#2], Y: [c#3]))",
                           "d#4");
  EXPECT_EQ(plan.instructions[3].waits_for, 0);
  EXPECT_FALSE(IsInPlaceOf(plan, 3, 1));
  EXPECT_TRUE(IsInPlaceOf(plan, 4, 2)) << "after the wait";
}

}  // namespace
}  // namespace skiff
