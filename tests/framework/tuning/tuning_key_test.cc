#include "framework/tuning/tuning_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/framework/tuning/candidates.h"
#include "tests/harness/thread_count.h"

namespace skiff {
namespace {

class TuningKeyTest : public ::testing::Test {
 protected:
  TuningKeyTest() { candidates::RegisterShift(registry_); }

  candidates::ShiftOp Shift() const { return candidates::ShiftOp(registry_, 3); }
  static std::string KeyOf(const candidates::ShiftOp& shift, bool is_constant = false) {
    const OpContext context = shift.Context();
    return TuningKey({.context = context,
                      .is_constant = std::vector<bool>(context.inputs().size(), is_constant)});
  }

  OpRegistry registry_;
  const harness::ThreadCount threads_{1};
};

TEST_F(TuningKeyTest, SaysWhatTheTimeDependsOn) {
  candidates::ShiftOp shift = Shift();
  EXPECT_EQ(KeyOf(shift),
            "shift {amount = 0.0} X=float32 [2, 3] plain -> Out=float32 [2, 3] plain, threads=1");
  shift.op().SetInput("Filter", {"w"}).SetOutput("Copy", {"c"}).SetAttr("amount", 2.0f);
  shift.x.layout = Layout::Blocked(8);
  EXPECT_EQ(KeyOf(shift, true),
            "shift {amount = 2.0} X=float32 [2, 3] blocked8 constant, Filter=float32 [2, 3] "
            "blocked8 constant -> Out=float32 [2, 3] blocked8, Copy=float32 [2, 3] blocked8, "
            "threads=1");
}

TEST_F(TuningKeyTest, IsTheSameForTheSameWork) {
  const std::string key = KeyOf(Shift());
  candidates::ShiftOp shift = Shift();
  // The default, a mark, other names, an argument that isn't there.
  shift.op().SetAttr("amount", 0.0f).SetAttr("op_role", int32_t{1});
  shift.op().SetInput("X", {"y"}).SetOutput("Out", {"z"}).SetOutput("Copy", {"@EMPTY@"});
  shift.x.persistable = true;
  EXPECT_EQ(KeyOf(shift), key);
}

// Its layout changes nothing, and two ops that differ there only are one.
TEST_F(TuningKeyTest, LeavesOutTheLayoutWhereOnlyTheShapeIsRead) {
  OpDef def = registry_.Get("shift");
  def.type = "shift_like";
  def.inputs[0].shape_only = true;
  registry_.Add(def);
  candidates::ShiftOp shift(registry_, 3, "shift_like");
  const std::string key = KeyOf(shift);
  EXPECT_THAT(key, testing::HasSubstr(" X=float32 [2, 3] -> "));
  shift.in_layout = Layout::Blocked(8);
  EXPECT_EQ(KeyOf(shift), key);
}

TEST_F(TuningKeyTest, NamesTheThreads) {
  const std::string key = KeyOf(Shift());
  const harness::ThreadCount two(2);
  EXPECT_NE(KeyOf(Shift()), key);
}

TEST_F(TuningKeyTest, HasAShortFormForPeople) {
  candidates::ShiftOp shift = Shift();
  shift.op().SetInput("Filter", {"w"});
  const OpContext context = shift.Context();
  EXPECT_EQ(ShortTuningKey({.context = context, .is_constant = {false, false}}),
            "shift [2, 3], [2, 3]");
  shift.x.layout = Layout::Blocked(8);
  const OpContext blocked = shift.Context();
  EXPECT_EQ(ShortTuningKey({.context = blocked, .is_constant = {false, false}}),
            "shift [2, 3] blocked8, [2, 3] blocked8");
}

}  // namespace
}  // namespace skiff
