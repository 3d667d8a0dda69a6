// What a runner does for each instruction of a plan, whoever owns it.
#include "framework/executor/run/plan_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/steady_seconds.h"
#include "framework/executor/storage/bound_values.h"
#include "framework/executor/storage/shared_arena.h"
#include "framework/executor/storage/storage.h"
#include "tests/framework/executor/lowered_plan.h"
#include "tests/harness/error_text.h"

namespace skiff::tiny {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// y = 4 x, and idle = 6 x.
class PlanRunnerTest : public LoweredPlanTest {
 protected:
  void Make(bool poisons, bool varies = false) {
    environment_.emplace(
        KernelEnvironment{.registry = registry_, .scope = &scope_, .poisons = poisons});
    std::vector<PreparedKernel> kernels =
        PrepareKernels({.environment = *environment_, .forced = {}}, &plan_);
    PlanStorage(&plan_);
    arena_ = std::make_shared<SharedArena>(DeviceLink::Host());
    values_.emplace(plan_, &scope_, arena_);
    runner_.emplace(
        PlanRunner::Inputs{.plan = plan_,
                           .environment = *environment_,
                           .values = &*values_,
                           .state = &state_,
                           .varies = [=](const Instruction&) { return varies; },
                           .current_plan = [this](size_t) -> const Plan& { return plan_; }},
        std::move(kernels));
    *values_->Of(plan_.feeds[0]) = Tensor::FromValues<float>({2}, {1, 2});
  }

  void Run(size_t i) {
    runner_->Run(i, [&] { runner_->kernel(i).Run(); });
  }

  void RunAll() {
    for (size_t i = 0; i < runner_->size(); ++i) Run(i);
  }

  std::vector<float> Fetched() const { return values_->Of(plan_.fetches[0])->ToVector<float>(); }

  std::optional<KernelEnvironment> environment_;
  RunState state_;
  std::shared_ptr<SharedArena> arena_;
  std::optional<BoundValues> values_;
  std::optional<PlanRunner> runner_;
};

TEST_F(PlanRunnerTest, FollowsTheArena) {
  Make(/*poisons=*/false);
  runner_->Bind();
  RunAll();
  EXPECT_THAT(Fetched(), ElementsAre(4, 8));
  arena_->Reserve(Place::Cpu(), plan_.planned_bytes + 4096);
  ASSERT_TRUE(values_->FollowArena());
  runner_->FollowArena();
  runner_->Bind();
  RunAll();
  EXPECT_THAT(Fetched(), ElementsAre(4, 8));
}

TEST_F(PlanRunnerTest, KnowsWhatReadsFeedsAndWritesVariables) {
  Make(/*poisons=*/false);
  for (size_t i = 0; i < runner_->size(); ++i) {
    EXPECT_EQ(runner_->ReadsFeed(i), i == 0) << i;
    EXPECT_EQ(runner_->WritesVariable(i), i == 2) << i;
  }
}

TEST_F(PlanRunnerTest, AdvancesTheVersionOfAVariableThatIsWritten) {
  Make(/*poisons=*/false);
  runner_->BindAllButFeedReaders();
  runner_->BindFeedReaders();
  const uint64_t before = *scope_.Version("w");
  Run(0);
  Run(1);
  EXPECT_EQ(*scope_.Version("w"), before);
  Run(2);
  EXPECT_EQ(*scope_.Version("w"), before + 1);
}

TEST_F(PlanRunnerTest, GivesAnErrorThePlaceOfTheOp) {
  Make(/*poisons=*/false);
  const std::string text = InvalidArgumentText(
      [&] { runner_->Run(1, [] { Throw(ErrorCode::kInvalidArgument, "refused"); }); });
  EXPECT_THAT(text, AllOf(HasSubstr("refused"), HasSubstr("tiny_copy")));
}

TEST_F(PlanRunnerTest, PoisonsMemoryThatIsDead) {
  Make(/*poisons=*/true);
  runner_->Bind();
  runner_->Poison();
  const auto is_nan = [](float x) { return std::isnan(x); };
  EXPECT_THAT(Fetched(), Each(::testing::Truly(is_nan)));
  RunAll();
  EXPECT_THAT(Fetched(), ElementsAre(4, 8));
  // b, which the last instruction has read.
  EXPECT_THAT(values_->Of(plan_.instructions[1].outputs[0])->ToVector<float>(),
              Each(::testing::Truly(is_nan)));
}

TEST_F(PlanRunnerTest, PreparesAKernelForOtherRowsOnce) {
  Make(/*poisons=*/false, /*varies=*/true);
  runner_->Bind();
  const BoundKernel* planned = &runner_->kernel(1);
  runner_->ChooseKernels();
  EXPECT_NE(&runner_->kernel(1), planned);
  EXPECT_EQ(runner_->TakePreparations().kernels, std::ssize(plan_.instructions));
  runner_->ChooseKernels();
  EXPECT_EQ(runner_->TakePreparations().kernels, 0);
  RunAll();
  EXPECT_THAT(Fetched(), ElementsAre(4, 8));
}

TEST_F(PlanRunnerTest, AddsUpTimesUntilItIsStopped) {
  Make(/*poisons=*/false);
  runner_->Bind();
  runner_->StartTiming(PlanRunner::Clock::kWaits);
  for (int run = 0; run < 2; ++run) {
    runner_->Time(1, [] {
      const double end = SteadySeconds() + 0.002;
      while (SteadySeconds() < end) continue;
    });
  }
  EXPECT_TRUE(runner_->is_timed());
  const std::vector<InstructionTime> times = runner_->StopTiming();
  EXPECT_FALSE(runner_->is_timed());
  ASSERT_EQ(times.size(), plan_.instructions.size());
  EXPECT_EQ(times[1].type, "tiny_copy");
  EXPECT_GE(times[1].seconds, 0.004);
  EXPECT_EQ(times[0].seconds, 0);
}

}  // namespace
}  // namespace skiff::tiny
