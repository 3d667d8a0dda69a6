#include "framework/analysis/fused_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "framework/analysis/plan_uses.h"
#include "framework/executor/lowering/lowering.h"
#include "framework/ir/text.h"
#include "tests/framework/executor/tiny_ops.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(BlockShape, KeepsRankAndWholeDims) {
  EXPECT_EQ(BlockShape({5, 6, 7}, 3, 40), (Shape{40, 1, 1}));
  EXPECT_EQ(BlockShape({5, 6, 7}, 2, 28), (Shape{4, 1, 7}));
  EXPECT_EQ(BlockShape({5, 6, 7}, 1, 84), (Shape{2, 6, 7}));
}

// A fused instruction of a whole program, in blocks of 4 floats.
class PlaceFusedTest : public ::testing::Test {
 protected:
  PlaceFusedTest() { tiny::RegisterTinyOps(registry_); }

  // Inputs are x and y, 0 and 1.
  FusedPlacement Placed(const std::string& ops, const std::vector<std::string>& outputs) {
    std::string vars;
    for (const char* name : {"x", "y", "a", "b", "c"}) {
      vars += "var " + std::string(name) + " float32 [8]\n";
    }
    program_ = ParseProgramText("program { block 0 {" + vars + ops + "} }");
    const TensorMeta fed{.shape = {8}};
    plan_ = LowerProgram({.registry = registry_, .scope = scope_, .place = Place::Cpu()}, *program_,
                         {{"x", fed}, {"y", fed}}, outputs);
    Instruction fused = plan_.instructions.back();
    fused.kind = InstructionKind::kFused;
    fused.inputs.clear();
    for (ValueId feed : plan_.feeds) {
      if (!DataReaders(plan_)[feed].empty()) fused.inputs.push_back(feed);
    }
    fused.outputs = plan_.fetches;
    fused.members = plan_.instructions;
    fused.blocks = {.elements = 4, .row_axis = 1, .part_count = 1};
    return PlaceFused(plan_, fused);
  }

  FusedValue Of(const FusedPlacement& placement, const std::string& name) const {
    return *std::ranges::find_if(
        placement.values, [&](const FusedValue& value) { return plan_[value.value].name == name; });
  }

  OpRegistry registry_;
  std::unique_ptr<Program> program_;
  Scope scope_;
  Plan plan_;
};

TEST_F(PlaceFusedTest, PutsWhatIsComputedInPlaceWhereItEnds) {
  const FusedPlacement placement = Placed(R"(
    {Out: [a]} = tiny_add(X: [x], Y: [y])
    {Out: [b]} = tiny_scale(X: [a])
    {Out: [c]} = tiny_scale(X: [b]))",
                                          {"c"});
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(Of(placement, name).output, 0) << name;
  EXPECT_EQ(Of(placement, "y").input, 1);
  EXPECT_EQ(placement.scratch_bytes, 0);
  EXPECT_EQ(placement.values.size(), 5);
}

TEST_F(PlaceFusedTest, GivesScratchMemoryToTheRestAndTakesItAgain) {
  const FusedPlacement placement = Placed(R"(
    {Out: [a]} = tiny_copy(X: [x])
    {Out: [b]} = tiny_copy(X: [a])
    {Out: [c]} = tiny_copy(X: [b]))",
                                          {"c"});
  EXPECT_NE(Of(placement, "a").scratch_offset, Of(placement, "b").scratch_offset);
  EXPECT_EQ(placement.scratch_bytes, 64 + 16);
  EXPECT_EQ(Of(placement, "c").scratch_offset, -1);
}

TEST_F(PlaceFusedTest, KeepsAnOutputFromTheOpsAfterIt) {
  const FusedPlacement placement = Placed(R"(
    {Out: [a]} = tiny_scale(X: [x])
    {Out: [b]} = tiny_scale(X: [a]))",
                                          {"a", "b"});
  EXPECT_EQ(Of(placement, "a").output, 0);
  EXPECT_EQ(Of(placement, "b").output, 1);
}

TEST_F(PlaceFusedTest, MayWriteOverAnInputOnlyOnceItIsRead) {
  // tiny_add works in place on X.
  EXPECT_THAT(Placed("{Out: [a]} = tiny_add(X: [x], Y: [y])", {"a"}).in_place,
              ElementsAre(Pair(0, 0)));
  EXPECT_THAT(Placed("{Out: [a]} = tiny_add(X: [y], Y: [x])", {"a"}).in_place,
              ElementsAre(Pair(1, 0)));
  // b is stored in place of c, so the first op writes there already.
  EXPECT_THAT(Placed(R"(
    {Out: [b]} = tiny_scale(X: [x])
    {Out: [c]} = tiny_add(X: [b], Y: [y]))",
                     {"c"})
                  .in_place,
              ElementsAre(Pair(0, 0)));
  // x is read for the last time before anything is written there.
  EXPECT_THAT(Placed(R"(
    {Out: [b]} = tiny_copy(X: [x])
    {Out: [c]} = tiny_copy(X: [b])
    {Out: [a]} = tiny_scale(X: [y]))",
                     {"c", "a"})
                  .in_place,
              ElementsAre(Pair(0, 0), Pair(0, 1), Pair(1, 1)));
  EXPECT_THAT(Placed("{Out: [a]} = tiny_add(X: [x], Y: [x])", {"a"}).in_place, IsEmpty());
}

}  // namespace
}  // namespace skiff
