#include "framework/analysis/verify_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "framework/base/error.h"
#include "framework/executor/lowering/lowering.h"
#include "framework/ir/text.h"
#include "tests/framework/executor/tiny_ops.h"

namespace skiff {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// a = scale(x); b = copy(a); w = sgd(w, b); y = add(b, w), fetched. By instruction: 0, 1, 2, 3.
class VerifyPlanTest : public ::testing::Test {
 protected:
  VerifyPlanTest() {
    tiny::RegisterTinyOps(registry_);
    program_ = ParseProgramText(R"(program { block 0 {
      var x float32 [2]
      var a float32 [2]
      var b float32 [2]
      var y float32 [2]
      param w float32 [2] persistable
      {Out: [a]} = tiny_scale(X: [x]) {factor = 2.0}
      {Out: [b]} = tiny_copy(X: [a])
      {ParamOut: [w]} = tiny_sgd(Param: [w], Grad: [b])
      {Out: [y]} = tiny_add(X: [b], Y: [w])
    } })");
    scope_.Set("w", Tensor::FromValues<float>({2}, {1, 2}));
    const TensorMeta fed{.shape = {2}};
    plan_ = LowerProgram({.registry = registry_, .scope = scope_, .place = Place::Cpu()}, *program_,
                         {{"x", fed}}, {"y"});
  }

  Instruction& At(size_t i) { return plan_.instructions[i]; }

  OpRegistry registry_;
  std::unique_ptr<Program> program_;
  Scope scope_;
  Plan plan_;
};

TEST_F(VerifyPlanTest, FindsNothingInWhatLoweringMakes) {
  EXPECT_THAT(VerifyPlan(plan_), IsEmpty());
  EXPECT_NO_THROW(CheckPlan(plan_));
}

TEST_F(VerifyPlanTest, TakesAViewForWhatItShows) {
  OpDef def = *At(1).def;
  At(1).def = &def;
  plan_[At(1).outputs[0]].alias_of = At(0).outputs[0];
  plan_.fetches.push_back(At(0).outputs[0]);
  EXPECT_THAT(VerifyPlan(plan_), ElementsAre(HasSubstr("fetch: reads \"a\"")));
  def.views = {{"X", "Out"}};
  EXPECT_THAT(VerifyPlan(plan_), IsEmpty());
}

TEST_F(VerifyPlanTest, FindsDataReadBeforeItIsWritten) {
  std::swap(At(0), At(1));
  EXPECT_THAT(VerifyPlan(plan_), ElementsAre(HasSubstr("instruction 0 (tiny_copy): reads \"a\"")));
  EXPECT_THROW(CheckPlan(plan_), Error);
  At(0).reads_data = {false};
  EXPECT_THAT(VerifyPlan(plan_), IsEmpty());
}

TEST_F(VerifyPlanTest, FindsAVariableThatWasWrittenSince) {
  std::swap(At(3), At(2));
  EXPECT_THAT(VerifyPlan(plan_),
              ElementsAre(HasSubstr("instruction 3 (tiny_sgd): reads \"w\" (#3), whose storage "
                                    "holds \"w\" (#4) by now")));
}

TEST_F(VerifyPlanTest, FindsAValueWhoseStorageWasTaken) {
  plan_[At(1).outputs[0]].alias_of = At(0).outputs[0];
  EXPECT_THAT(VerifyPlan(plan_), IsEmpty());
  At(3).inputs[0] = At(0).outputs[0];
  EXPECT_THAT(VerifyPlan(plan_), ElementsAre(HasSubstr("whose storage holds \"b\"")));
}

TEST_F(VerifyPlanTest, FindsWhatIsWrittenTwiceOrFed) {
  At(1).outputs[0] = At(0).outputs[0];
  EXPECT_THAT(VerifyPlan(plan_), ElementsAre(HasSubstr("instruction 1 (tiny_copy): writes \"a\""),
                                             HasSubstr("reads \"b\""), HasSubstr("reads \"b\"")));
  At(1).outputs[0] = plan_.feeds[0];
  EXPECT_THAT(VerifyPlan(plan_), Contains(HasSubstr("writes the feed \"x\"")));
}

// b = fused(scale, copy)(x)
TEST_F(VerifyPlanTest, FindsWhatTheMembersOfAFusedInstructionLack) {
  Instruction fused = At(1);
  fused.kind = InstructionKind::kFused;
  fused.inputs = At(0).inputs;
  fused.members = {At(0), At(1)};
  plan_.instructions.erase(plan_.instructions.begin());
  At(0) = fused;
  EXPECT_THAT(VerifyPlan(plan_), IsEmpty());
  std::swap(At(0).members[0], At(0).members[1]);
  EXPECT_THAT(VerifyPlan(plan_),
              ElementsAre(HasSubstr("instruction 0 (fused(tiny_copy,tiny_scale)): tiny_copy reads "
                                    "\"a\" (#1), which isn't handed to it")));
  At(0).members = {fused.members[0]};
  EXPECT_THAT(VerifyPlan(plan_), ElementsAre(HasSubstr("has the output \"b\" (#2) of no member")));
  At(0).members[0].inputs.clear();
  EXPECT_THAT(VerifyPlan(plan_), Contains(HasSubstr("its op has 1 and 1 arguments")));
}

TEST_F(VerifyPlanTest, FindsAFetchThatNothingWrites) {
  plan_.instructions.pop_back();
  EXPECT_THAT(VerifyPlan(plan_), ElementsAre(HasSubstr("fetch: reads \"y\"")));
}

TEST_F(VerifyPlanTest, FindsContiguousValuesThatAreNot) {
  const ValueId a = At(0).outputs[0];
  const ValueId b = At(1).outputs[0];
  plan_.contiguous = {{.values = {a, b, plan_.feeds[0]}, .alignment_bytes = 4}};
  EXPECT_THAT(VerifyPlan(plan_), IsEmpty());
  plan_[a].offset = 64;
  plan_[b].offset = 72;
  EXPECT_THAT(VerifyPlan(plan_), IsEmpty());
  plan_[b].offset = 128;
  EXPECT_THAT(VerifyPlan(plan_),
              ElementsAre("contiguous values: \"b\" (#2) is at 128: expected 8 bytes after "
                          "\"a\" (#1) at 64"));
  plan_.contiguous[0].alignment_bytes = 64;
  EXPECT_THAT(VerifyPlan(plan_), IsEmpty());
  plan_.contiguous[0].alignment_bytes = 2;
  EXPECT_THAT(VerifyPlan(plan_), ElementsAre(HasSubstr("contiguous values: ")));
}

TEST_F(VerifyPlanTest, FindsAnInstructionThatDoesNotFitItsOp) {
  At(3).inputs.pop_back();
  EXPECT_THAT(VerifyPlan(plan_), Contains(HasSubstr("its op has 2 and 1 arguments")));
  At(3).op = nullptr;
  EXPECT_THAT(VerifyPlan(plan_), Contains(HasSubstr("instruction 3: has no op")));
}

}  // namespace
}  // namespace skiff
