#include "framework/executor/run/collective_activity.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/framework/executor/echo_communicator.h"
#include "tests/framework/executor/lowered_plan.h"

namespace skiff {
namespace {

class SpiedCommunicator final : public EchoCommunicator {
 public:
  // As an Error has it.
  std::string Activity() const { return ActivityText(); }
};

using CollectiveActivityTest = tiny::LoweredPlanTest;

TEST_F(CollectiveActivityTest, NamesOpOutputAndStepWhileTheKernelRuns) {
  SpiedCommunicator communicator;
  CollectiveActivity activity(plan_, plan_.instructions[1], &communicator);
  for (const uint64_t step : {uint64_t{812}, uint64_t{7}, ~uint64_t{0}}) {
    std::string found;
    activity.During(step - 1, [&] { found = communicator.Activity(); });
    EXPECT_EQ(found, " in tiny_copy of b, step " + std::to_string(step));
    EXPECT_EQ(communicator.Activity(), "");
  }
}

TEST_F(CollectiveActivityTest, EndsWhenTheKernelThrows) {
  SpiedCommunicator communicator;
  CollectiveActivity activity(plan_, plan_.instructions[1], &communicator);
  EXPECT_THROW(activity.During(1, [] { throw std::runtime_error("a rank has ended"); }),
               std::runtime_error);
  EXPECT_EQ(communicator.Activity(), "");
}

}  // namespace
}  // namespace skiff
