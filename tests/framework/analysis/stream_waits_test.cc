#include "framework/analysis/stream_waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "framework/analysis/liveness.h"
#include "framework/analysis/memory_report.h"
#include "framework/analysis/verify_plan.h"
#include "framework/plan/plan_text.h"
#include "tests/framework/executor/tiny_ops.h"

namespace skiff {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StreamWaitsTest : public ::testing::Test {
 protected:
  StreamWaitsTest() { tiny::RegisterTinyOps(registry_); }

  // A plan of these instructions. The values x#0 (a feed) and w#1 (a variable) are there.
  Plan Of(const std::string& instructions, const std::string& fetches = "") const {
    return ParsePlan(registry_, R"(plan cpu reuse=none {
                                     value x#0 float32 [4] @feed
                                     value w#1 float32 [4] persistable @scope
                                   )" +
                                    instructions + "feed [x#0] fetch [" + fetches + "] }");
  }

  OpRegistry registry_;
};

TEST_F(StreamWaitsTest, ThereAreNoneInOneStream) {
  const Plan plan = Of(R"(
    {Out: [a#2 float32 [4]]} = tiny_exchange(X: [x#0])
    {Out: [b#3 float32 [4]]} = tiny_copy(X: [a#2]))");
  EXPECT_FALSE(HasCommunicationStream(plan));
  EXPECT_THAT(StreamWaits(plan), Each(-1));
  EXPECT_THAT(StreamEnds(plan), ElementsAre(0, 1, 2));
}

TEST_F(StreamWaitsTest, AReaderWaitsForTheWriter) {
  const Plan plan = Of(R"(
    {Out: [a#2 float32 [4]]} = tiny_exchange(X: [x#0]) @comm(c0)
    {Out: [b#3 float32 [4]]} = tiny_copy(X: [x#0])
    {Out: [c#4 float32 [4]]} = tiny_copy(X: [a#2]))");
  EXPECT_TRUE(HasCommunicationStream(plan));
  EXPECT_THAT(StreamWaits(plan), ElementsAre(-1, -1, 0));
}

// Whoever has waited once has waited for all that came before.
TEST_F(StreamWaitsTest, OneWaitIncludesTheEarlierOnes) {
  const Plan plan = Of(R"(
    {Out: [a#2 float32 [4]]} = tiny_exchange(X: [x#0]) @comm(c0)
    {Out: [b#3 float32 [4]]} = tiny_exchange(X: [x#0]) @comm(c1)
    {Out: [c#4 float32 [4]]} = tiny_exchange(X: [x#0]) @comm(c2)
    {Out: [d#5 float32 [4]]} = tiny_copy(X: [b#3])
    {Out: [e#6 float32 [4]]} = tiny_copy(X: [a#2])
    {Out: [f#7 float32 [4]]} = tiny_add(X: [c#4], Y: [b#3]))");
  EXPECT_THAT(StreamWaits(plan), ElementsAre(-1, -1, -1, 1, -1, 2));
}

TEST_F(StreamWaitsTest, WhoOverwritesWaitsForReadersAndWriters) {
  const Plan reads = Of(R"(
    {Out: [a#2 float32 [4]]} = tiny_exchange_copy(X: [w#1]) @comm(c0)
    {Out: [b#3 float32 [4]]} = tiny_copy(X: [w#1])
    {ParamOut: [w#4 float32 [4] persistable @scope]} = tiny_sgd(Param: [w#1], Grad: [x#0]))");
  EXPECT_THAT(StreamWaits(reads), ElementsAre(-1, -1, 0));
  const Plan writes = Of(R"(
    {Out: [w#2 float32 [4] persistable @scope]} = tiny_exchange_copy(X: [x#0]) @comm(c0)
    {Out: [b#3 float32 [4]]} = tiny_copy(X: [x#0])
    {Out: [w#4 float32 [4] persistable @scope]} = tiny_copy(X: [x#0]))");
  EXPECT_THAT(StreamWaits(writes), ElementsAre(-1, -1, 0));
}

TEST_F(StreamWaitsTest, ValuesInOneStorageAreOne) {
  const Plan plan = Of(R"(
    {Out: [a#2 float32 [4]]} = tiny_copy(X: [x#0])
    {Out: [b#3 float32 [4]]} = tiny_exchange_copy(X: [a#2]) @comm(c0)
    {Out: [c#4 float32 [4]]} = tiny_copy(X: [x#0])
    {Out: [d#5 float32 [4] @a#2]} = tiny_scale(X: [c#4]))");
  EXPECT_THAT(StreamWaits(plan), ElementsAre(-1, -1, -1, 0));
}

TEST_F(StreamWaitsTest, NobodyWaitsForAShape) {
  const Plan plan = Of(R"(
    {Out: [a#2 float32 [4]]} = tiny_exchange(X: [x#0]) @comm(c0)
    {Out: [b#3 float32 [4]]} = tiny_ones_like(X: [a#2]))");
  EXPECT_THAT(StreamWaits(plan), Each(-1));
}

// Two threads must not use one communicator.
TEST_F(StreamWaitsTest, ACollectiveInTheMainStreamWaitsForAll) {
  const Plan plan = Of(R"(
    {Out: [a#2 float32 [4]]} = tiny_exchange(X: [x#0]) @comm(c0)
    {Out: [b#3 float32 [4]]} = tiny_exchange(X: [x#0]))");
  EXPECT_THAT(StreamWaits(plan), ElementsAre(-1, 0));
}

TEST_F(StreamWaitsTest, AnInstructionEndsWhereTheMainStreamWaits) {
  const Plan plan = Of(R"(
    {Out: [a#2 float32 [4]]} = tiny_exchange(X: [x#0]) @comm(c0)
    {Out: [b#3 float32 [4]]} = tiny_exchange(X: [x#0]) @comm(c1)
    {Out: [c#4 float32 [4]]} = tiny_exchange(X: [x#0]) @comm(c2)
    {Out: [d#5 float32 [4]]} = tiny_copy(X: [b#3]) wait(c1)
    {Out: [e#6 float32 [4]]} = tiny_copy(X: [a#2]))");
  EXPECT_THAT(StreamEnds(plan), ElementsAre(3, 3, 5, 3, 4, 5));
}

TEST_F(StreamWaitsTest, ValuesLiveUntilTheMainStreamWaits) {
  const std::string text = R"(
    {Out: [a#2 float32 [4]]} = tiny_copy(X: [x#0])
    {Out: [b#3 float32 [4]]} = tiny_exchange_copy(X: [a#2]) @comm(c0) workspaces=[100]
    {Out: [c#4 float32 [4]]} = tiny_copy(X: [x#0])
    {Out: [d#5 float32 [4]]} = tiny_copy(X: [c#4])
    {Out: [e#6 float32 [4]]} = tiny_copy(X: [b#3]) wait(c0)
    {Out: [f#7 float32 [4]]} = tiny_exchange_copy(X: [e#6]) @comm(c1)
    {Out: [g#8 float32 [4]]} = tiny_copy(X: [c#4]))";
  const Plan plan = Of(text);
  const ValueTable<Life> lives = StorageLives(plan);
  const auto last = [&](size_t value) { return lives[ValueId(value)].last; };
  EXPECT_EQ(last(2), 4) << "read beside";
  EXPECT_EQ(last(3), 4) << "written beside";
  EXPECT_EQ(last(4), 6) << "of the main stream alone";
  EXPECT_EQ(last(6), 7) << "nothing but the end of the run waits";
  EXPECT_EQ(last(7), 7) << "even if nothing reads it";
  // The last one has e, f, c and g; the fourth, the workspace and a, b, c and d.
  EXPECT_THAT(LiveBytes(plan), ElementsAre(16, 132, 148, 164, 164, 48, 64));
  const MemoryReport report = ReportMemory(plan);
  for (const PlannedBuffer& block : report.blocks) {
    if (block.variable.empty()) {
      EXPECT_EQ(block.last, 4) << "the workspace";
    }
  }
}

// They run one after the other, though all are known to be over only at the wait.
TEST_F(StreamWaitsTest, WorkspacesOfTheStreamAreOneBuffer) {
  Plan plan = Of(R"(
    {Out: [a#2 float32 [4]]} = tiny_exchange_copy(X: [x#0]) @comm(c0) workspaces=[100, 20]
    {Out: [b#3 float32 [4]]} = tiny_exchange_copy(X: [x#0]) @comm(c1) workspaces=[200]
    {Out: [c#4 float32 [4]]} = tiny_copy(X: [x#0]) workspaces=[8]
    {Out: [d#5 float32 [4]]} = tiny_copy(X: [b#3]) wait(c1)
    {Out: [e#6 float32 [4]]} = tiny_copy(X: [d#5]))");
  const std::optional<StreamWorkspace> shared = WorkspaceOfStream(plan, plan.place);
  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->life.first, 0);
  EXPECT_EQ(shared->life.last, 3);
  EXPECT_EQ(shared->largest, 1u);
  EXPECT_EQ(shared->bytes, 200);
  EXPECT_THAT(WorkspacesInRow(plan.instructions[0]), ElementsAre(0, 128, 148));
  EXPECT_FALSE(WorkspaceOfStream(plan, Place::Cuda()));
  EXPECT_THAT(LiveBytes(plan), ElementsAre(216, 232, 256, 248, 32));
  std::vector<int64_t> workspaces;
  for (const PlannedBuffer& block : ReportMemory(plan).blocks) {
    if (block.variable.empty()) workspaces.push_back(block.bytes);
  }
  EXPECT_THAT(workspaces, ElementsAre(200, 8));
  plan.has_guards = true;
  EXPECT_FALSE(WorkspaceOfStream(plan, plan.place)) << "guards lie between them";
  EXPECT_THAT(LiveBytes(plan), ElementsAre(136, 352, 376, 368, 32));
}

TEST_F(StreamWaitsTest, APlanWithItsWaitsIsSound) {
  EXPECT_THAT(VerifyPlan(Of(R"(
                {Out: [a#2 float32 [4]]} = tiny_exchange(X: [x#0]) @comm(c0)
                {Out: [b#3 float32 [4]]} = tiny_copy(X: [a#2]) wait(c0)
                {Out: [c#4 float32 [4]]} = tiny_copy(X: [a#2]))")),
              IsEmpty());
}

TEST_F(StreamWaitsTest, AWaitThatIsMissingIsFound) {
  EXPECT_THAT(VerifyPlan(Of(R"(
                {Out: [a#2 float32 [4]]} = tiny_exchange(X: [x#0]) @comm(c0)
                {Out: [b#3 float32 [4]]} = tiny_copy(X: [x#0])
                {Out: [c#4 float32 [4]]} = tiny_copy(X: [a#2]))")),
              ElementsAre(HasSubstr("instruction 2 (tiny_copy): doesn't wait for c0")));
}

TEST_F(StreamWaitsTest, AnInstructionInTheWrongStreamIsFound) {
  EXPECT_THAT(
      VerifyPlan(Of("{Out: [a#2 float32 [4]]} = tiny_copy(X: [x#0]) @comm(c0)")),
      ElementsAre(HasSubstr("instruction 0 (tiny_copy): in the communication stream without")));
}

TEST_F(StreamWaitsTest, AWaitInTheWrongPlaceIsFound) {
  Plan plan = Of(R"(
    {Out: [a#2 float32 [4]]} = tiny_exchange(X: [x#0]) @comm(c0)
    {Out: [b#3 float32 [4]]} = tiny_exchange(X: [x#0]) @comm(c1))");
  plan.instructions[1].waits_for = 0;
  EXPECT_THAT(VerifyPlan(plan), ElementsAre(HasSubstr("waits, in the communication stream")));
  plan.instructions[1].stream = PlanStream::kMain;
  plan.instructions[1].waits_for = 1;
  EXPECT_THAT(VerifyPlan(plan), Contains(HasSubstr("waits for c1 before that is given")));
}

}  // namespace
}  // namespace skiff
