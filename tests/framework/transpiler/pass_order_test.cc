#include "framework/transpiler/pass_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "framework/base/error.h"
#include "framework/transpiler/pass.h"
#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

using ::testing::Contains;

TEST(PassOrder, DefaultPipelinesKeepToIt) {
  for (const auto& names : {ProgramPassNames(), PlanPassNames()}) {
    EXPECT_NO_THROW(CheckPassOrder({names.begin(), names.end()}));
  }
}

TEST(PassOrder, NamesPassesOfOneKindThatThereAre) {
  const std::vector<std::string> program = ProgramPassNames();
  const std::vector<std::string> plan = PlanPassNames();
  for (const PassOrder& order : PassOrders()) {
    const bool is_program = std::ranges::count(program, order.earlier) > 0;
    EXPECT_THAT(is_program ? program : plan, Contains(order.earlier)) << order.later;
    EXPECT_THAT(is_program ? program : plan, Contains(order.later)) << order.earlier;
    EXPECT_FALSE(order.reason.empty()) << order.earlier << " before " << order.later;
  }
}

TEST(PassOrder, EachConstraintRefusesTheOtherOrder) {
  for (const PassOrder& order : PassOrders()) {
    EXPECT_NO_THROW(CheckPassOrder({order.earlier, "own", order.later}));
    ExpectError(
        [&] {
          CheckPassOrder({order.later, "own", order.earlier});
        },
        ErrorCode::kFailedPrecondition,
        StrCat("the pass ", order.earlier, " would run after ", order.later,
               ", expected before it, since ", order.reason));
  }
}

TEST(PassOrder, HoldsForPassesOfTheCaller) {
  const OpRegistry registry;
  Plan plan;
  PipelineOptions options;
  options.plan_passes = {MakePlanPass("order")};
  EXPECT_THROW(RunPlanPasses({.registry = registry}, &plan, options), Error);
  options.skip = {"memory_reuse"};
  EXPECT_NO_THROW(RunPlanPasses({.registry = registry}, &plan, options));
}

}  // namespace
}  // namespace skiff
