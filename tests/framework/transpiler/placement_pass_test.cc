#include "framework/transpiler/placement_pass.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "framework/analysis/verify_plan.h"
#include "framework/plan/plan_text.h"
#include "tests/framework/executor/tiny_ops.h"
#include "tests/harness/emulated_device.h"

namespace skiff {
namespace {

// A device that has no kernel for tiny_sum.
class Placement : public ::testing::Test {
 protected:
  Placement() {
    tiny::RegisterTinyOps(tiny_ops_);
    registry_ = harness::RegistryWithEmulation(
        tiny_ops_, [](const OpDef& def) { return def.type == "tiny_sum"; });
  }

  // Returns the plan after the pass.
  std::string Placed(const std::string& text) {
    Plan plan = ParsePlan(*registry_, text);
    const PassContext context{.registry = *registry_};
    PlacementPass().Apply(context, &plan);
    CheckPlan(plan);
    return PrintPlan(plan);
  }

  OpRegistry tiny_ops_;
  std::unique_ptr<OpRegistry> registry_;
};

TEST_F(Placement, CopiesAFeedOnceAndWhatTheCpuReads) {
  EXPECT_EQ(Placed(R"(plan "cuda:0" reuse=none {
  value x#0 float32 [4] place=cpu @feed
  {Out: [y#1 float32 [4]]} = tiny_copy(X: [x#0])
  {Out: [z#2 float32 [4]]} = tiny_add(X: [x#0], Y: [y#1])
  {Out: [s#3 float32 [1]]} = tiny_sum(X: [z#2])
  {Out: [t#4 float32 [1]]} = tiny_copy(X: [s#3])
  feed [x#0]
  fetch [t#4]
}
)"),
            R"(plan "cuda:0" reuse=none {
  value x#0 float32 [4] place=cpu @feed
  copy [x#5 float32 [4]] from [x#0]
  {Out: [y#1 float32 [4]]} = tiny_copy(X: [x#5]) position=0
  {Out: [z#2 float32 [4]]} = tiny_add(X: [x#5], Y: [y#1])
  copy [z#6 float32 [4] place=cpu] from [z#2]
  {Out: [s#3 float32 [1] place=cpu]} = tiny_sum(X: [z#6]) place=cpu position=2
  copy [s#7 float32 [1]] from [s#3]
  {Out: [t#4 float32 [1]]} = tiny_copy(X: [s#7]) position=3
  feed [x#0]
  fetch [t#4]
}
)");
}

TEST_F(Placement, WritesVariablesOfTheDeviceByACopy) {
  EXPECT_EQ(Placed(R"(plan "cuda:0" reuse=none {
  value x#0 float32 [4] @scope
  {Out: [s#1 float32 [1] persistable @scope]} = tiny_sum(X: [x#0])
  {Out: [t#2 float32 [1]]} = tiny_copy(X: [s#1])
  feed []
  fetch [t#2]
}
)"),
            R"(plan "cuda:0" reuse=none {
  value x#0 float32 [4] @scope
  copy [x#3 float32 [4] place=cpu] from [x#0]
  {Out: [s#4 float32 [1] place=cpu]} = tiny_sum(X: [x#3]) place=cpu position=0
  copy [s#1 float32 [1] persistable @scope] from [s#4] position=0
  {Out: [t#2 float32 [1]]} = tiny_copy(X: [s#1])
  feed []
  fetch [t#2]
}
)");
}

TEST_F(Placement, LeavesAPlanOnTheCpuAlone) {
  const std::string plan = R"(plan cpu reuse=none {
  value x#0 float32 [4] @feed
  {Out: [s#1 float32 [1]]} = tiny_sum(X: [x#0])
  feed [x#0]
  fetch [s#1]
}
)";
  EXPECT_EQ(Placed(plan), plan);
}

}  // namespace
}  // namespace skiff
