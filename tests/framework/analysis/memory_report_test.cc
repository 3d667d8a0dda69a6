#include "framework/analysis/memory_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "framework/executor/lowering/lowering.h"
#include "framework/ir/text.h"
#include "tests/framework/executor/tiny_ops.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

// Arena values: a and b of 8 bytes, y of 4; c uses the storage of b.
class MemoryReportTest : public ::testing::Test {
 protected:
  MemoryReportTest() {
    tiny::RegisterTinyOps(registry_);
    program_ = ParseProgramText(R"(program { block 0 {
      var x float32 [2]
      var a float32 [2]
      var b float32 [2]
      var c float32 [2]
      var y float32 [1]
      {Out: [a]} = tiny_copy(X: [x]) {op_namescope = "/first/"}
      {Out: [b]} = tiny_add(X: [x], Y: [a])
      {Out: [c]} = tiny_scale(X: [b])
      {Out: [y]} = tiny_sum(X: [c])
    } })");
    program_->root()->ops()[0]->site = {.file = "net.cc", .line = 7};
    const TensorMeta fed{.shape = {2}};
    plan_ = LowerProgram({.registry = registry_, .scope = scope_, .place = Place::Cpu()}, *program_,
                         {{"x", fed}}, {"y"});
    for (const ValueId value : plan_.ids()) {
      if (plan_[value].name == "b") b_ = value;
      if (plan_[value].name == "c") plan_[value].alias_of = b_;
    }
  }

  OpRegistry registry_;
  std::unique_ptr<Program> program_;
  Scope scope_;
  Plan plan_;
  ValueId b_;
};

TEST_F(MemoryReportTest, NamesWhatLivesWhen) {
  const MemoryReport report = ReportMemory(plan_);
  EXPECT_THAT(report.live_bytes, ElementsAre(8, 16, 8, 12));
  EXPECT_THAT(report.op_names, ElementsAre("tiny_copy", "tiny_add", "tiny_scale", "tiny_sum"));
  EXPECT_EQ(report.peak, 1u);
  EXPECT_THAT(report.blocks, ElementsAre(Field(&PlannedBuffer::variable, "a"),
                                         Field(&PlannedBuffer::variable, "b"),
                                         Field(&PlannedBuffer::variable, "y")));
  const PlannedBuffer& a = report.blocks[0];
  EXPECT_EQ(a.op, "tiny_copy");
  EXPECT_EQ(a.layer, "/first/");
  EXPECT_EQ(a.site, "net.cc:7");
  EXPECT_EQ(a.bytes, 8);
  EXPECT_EQ(a.first, 0);
  EXPECT_EQ(a.last, 1);
  // Because of c, which uses its storage. y is fetched, which counts as a read after the last
  // instruction.
  EXPECT_EQ(report.blocks[1].last, 3);
  EXPECT_EQ(report.blocks[2].last, 4);
}

TEST_F(MemoryReportTest, NamesWorkspaces) {
  plan_.instructions[2].workspace_bytes = {100};
  plan_.instructions[2].workspace_offsets = {64};
  const MemoryReport report = ReportMemory(plan_);
  EXPECT_EQ(report.peak, 2u);
  ASSERT_EQ(report.blocks.size(), 4u);
  const PlannedBuffer& workspace = report.blocks[2];
  EXPECT_EQ(workspace.variable, "");
  EXPECT_EQ(workspace.op, "tiny_scale");
  EXPECT_EQ(workspace.bytes, 100);
  EXPECT_EQ(workspace.offset, 64);
}

TEST_F(MemoryReportTest, ListsTheLargestAtThePeakFirst) {
  plan_.instructions[1].workspace_bytes = {100, 0};
  const std::vector<PlannedBuffer> blocks = ReportMemory(plan_).BlocksAtPeak();
  EXPECT_THAT(blocks,
              ElementsAre(Field(&PlannedBuffer::bytes, 100), Field(&PlannedBuffer::variable, "a"),
                          Field(&PlannedBuffer::variable, "b")));
}

TEST(MemoryReport, OfNothingIsEmpty) {
  const MemoryReport report = ReportMemory(Plan());
  EXPECT_THAT(report.blocks, IsEmpty());
  EXPECT_THAT(report.BlocksAtPeak(), IsEmpty());
}

}  // namespace
}  // namespace skiff
