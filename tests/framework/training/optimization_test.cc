#include "framework/training/optimization.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "framework/builder/data.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/program_guard.h"
#include "framework/executor/executor.h"
#include "framework/ir/program.h"
#include "tests/harness/error_text.h"

namespace skiff::training {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::DoubleNear;
using ::testing::Matcher;
using ::testing::Not;
using ::testing::Pointwise;

const OptimizationOptions kPlain{.optimizer = "sgd",
                                 .learning_rate = 0.5f,
                                 .schedule = ScheduleKind::kConstant,
                                 .weight_decay = 0};

Matcher<const std::vector<double>&> Distances(const std::vector<double>& expected) {
  return Pointwise(DoubleNear(1e-6), expected);
}

class OptimizationTest : public ::testing::Test {
 protected:
  // Builds a training of y = x · w and returns its learning rate.
  Optimization Build(const OptimizationOptions& options) {
    main_ = std::make_unique<Program>();
    startup_ = std::make_unique<Program>();
    const ProgramGuard guard(main_.get(), startup_.get());
    const Variable x = layers::Data("x", {-1, 2});
    return Optimize(layers::Mean(layers::Fc(x, 1, {.bias_attr = false})), options);
  }
  std::vector<std::string> OpTypes() const {
    std::vector<std::string> types;
    for (const auto& op : main_->root()->ops()) types.push_back(op->type);
    return types;
  }
  // How far w moves in each step on x.
  std::vector<double> DistancesOfSteps(const std::vector<std::array<float, 2>>& x) {
    Executor executor;
    executor.Run(*startup_);
    std::vector<double> distances;
    for (const auto& [x0, x1] : x) {
      const std::vector<float> before = executor.scope().Get("fc_0.w_0").ToVector<float>();
      executor.Run(*main_, {{"x", Tensor::FromValues<float>({1, 2}, {x0, x1})}});
      const std::vector<float> after = executor.scope().Get("fc_0.w_0").ToVector<float>();
      distances.push_back(std::hypot(after[0] - before[0], after[1] - before[1]));
    }
    return distances;
  }

  std::unique_ptr<Program> main_;
  std::unique_ptr<Program> startup_;
};

TEST_F(OptimizationTest, ClipsAllGradientsTogether) {
  Build(kPlain);
  EXPECT_THAT(DistancesOfSteps({{3, 4}}), Distances({0.5 * 5}));
  OptimizationOptions clipped = kPlain;
  clipped.clip_norm = 2;
  Build(clipped);
  EXPECT_THAT(DistancesOfSteps({{3, 4}}), Distances({0.5 * 2}));
}

TEST_F(OptimizationTest, ALinearScheduleFallsToNothing) {
  OptimizationOptions linear = kPlain;
  linear.schedule = ScheduleKind::kLinear;
  linear.total_steps = 4;
  Build(linear);
  EXPECT_THAT(DistancesOfSteps({{3, 4}, {3, 4}, {3, 4}, {3, 4}, {3, 4}}),
              Distances({2.5, 2.5 * 0.75, 2.5 * 0.5, 2.5 * 0.25, 0}));
}

TEST_F(OptimizationTest, MergedStepsMakeOneUpdateAndOneStepOfTheSchedule) {
  OptimizationOptions merged = kPlain;
  merged.schedule = ScheduleKind::kLinear;
  merged.total_steps = 4;
  merged.gradient_merge_steps = 2;
  Build(merged);
  EXPECT_THAT(DistancesOfSteps({{3, 4}, {9, 12}, {3, 4}, {9, 12}}),
              Distances({0, 0.5 * 10, 0, 0.25 * 10}));
}

TEST_F(OptimizationTest, SkipsUpdatesThatAreNotFinite) {
  OptimizationOptions skipping = kPlain;
  skipping.skip_non_finite = true;
  Build(skipping);
  EXPECT_THAT(DistancesOfSteps({{3, 4}, {INFINITY, 4}, {3, 4}}), Distances({2.5, 0, 2.5}));
}

TEST_F(OptimizationTest, WarmsUpOverATenthOfTheUpdatesIfTold) {
  OptimizationOptions options = kPlain;
  options.total_steps = 20;
  options.warmup_updates = -1;
  Build(options);
  EXPECT_THAT(DistancesOfSteps({{3, 4}}), Distances({2.5 / 3}));
  options.total_steps = 9;
  Build(options);
  EXPECT_THAT(DistancesOfSteps({{3, 4}}), Distances({2.5}));
}

TEST_F(OptimizationTest, AveragesWhatItIsToldTo) {
  EXPECT_EQ(Build({.total_steps = 10}).average, nullptr);
  const Optimization window = Build({.total_steps = 10, .averaging = AveragingKind::kWindow});
  EXPECT_THAT(window.average->variables(), Contains("fc_0.w_0"));
  EXPECT_THAT(OpTypes(), Contains("average_accumulates"));
  Build({.optimizer = "lamb", .total_steps = 10, .averaging = AveragingKind::kEma});
  EXPECT_THAT(OpTypes(), AllOf(Contains("lamb"), Contains("exponential_moving_average")));
}

TEST_F(OptimizationTest, RefusesOptionsBeforeItAppendsAnything) {
  const auto expect = [&](const OptimizationOptions& options, const std::string& message) {
    EXPECT_EQ(InvalidArgumentText([&] { Build(options); }), message);
    EXPECT_THAT(OpTypes(), Not(Contains("mean_grad")));
  };
  expect({.learning_rate = -1}, "learning_rate = -1: expected a finite number, not negative");
  expect({.clip_norm = -1}, "clip_norm = -1: expected a finite number, not negative");
  expect({.total_steps = 0}, "total_steps = 0: expected at least 1");
  expect({.total_steps = 4, .gradient_merge_steps = 0},
         "gradient_merge = 0: expected at least 1 step");
  expect({.total_steps = 4, .warmup_updates = 4},
         "warm-up over 4 of 4 updates: expected 0 to 3, or -1 for a tenth of them");
  expect({.total_steps = 4, .warmup_updates = -2},
         "warm-up over -2 of 4 updates: expected 0 to 3, or -1 for a tenth of them");
  expect({.total_steps = 4, .gradient_merge_steps = 2, .warmup_updates = 2},
         "warm-up over 2 of 2 updates: expected 0 to 1, or -1 for a tenth of them");
  expect({.average_window = 2}, "average_window = 2, expected one in [0, 1]");
  expect({.ema_decay = 1}, "ema_decay = 1, expected one in [0, 1)");
  expect({.optimizer = "sgd", .optimizer_options = {{"momentum", 0.5}}},
         "optimizer \"sgd\" has no option \"momentum\"");
}

TEST(Names, NameTheChoices) {
  EXPECT_EQ(ScheduleKindFromName("step"), ScheduleKind::kStep);
  EXPECT_EQ(InvalidArgumentText([] { ScheduleKindFromName("noam"); }),
            "schedule \"noam\": expected constant, cosine, linear or step");
  EXPECT_EQ(AveragingKindFromName("ema"), AveragingKind::kEma);
  EXPECT_EQ(InvalidArgumentText([] { AveragingKindFromName("median"); }),
            "model_average \"median\": expected none, window or ema");
}

}  // namespace
}  // namespace skiff::training
