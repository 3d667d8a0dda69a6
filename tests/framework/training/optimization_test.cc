#include "framework/training/optimization.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "framework/builder/data.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/program_guard.h"
#include "framework/executor/executor.h"
#include "tests/harness/error_text.h"

namespace skiff::training {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Not;

class OptimizationTest : public ::testing::Test {
 protected:
  // Builds a training of y = x · w and returns its learning rate.
  Optimization Build(const OptimizationOptions& options) {
    main_ = std::make_unique<Program>();
    startup_ = std::make_unique<Program>();
    const ProgramGuard guard(main_.get(), startup_.get());
    const Variable x = layers::Data("x", {-1, 2});
    return Optimize(layers::Mean(layers::Fc(x, 1, {.bias_attr = std::nullopt})), options);
  }
  std::vector<std::string> OpTypes() const {
    std::vector<std::string> types;
    for (const auto& op : main_->root()->ops()) types.push_back(op->type);
    return types;
  }
  // How far w moves in one step on x = {3, 4}.
  double DistanceOfAStep() {
    Executor executor;
    executor.Run(*startup_);
    const std::vector<float> before = executor.scope().Get("fc_0.w_0").ToVector<float>();
    executor.Run(*main_, {{"x", Tensor::FromValues<float>({1, 2}, {3, 4})}});
    const std::vector<float> after = executor.scope().Get("fc_0.w_0").ToVector<float>();
    return std::hypot(after[0] - before[0], after[1] - before[1]);
  }

  std::unique_ptr<Program> main_;
  std::unique_ptr<Program> startup_;
};

TEST_F(OptimizationTest, ClipsAllGradientsTogether) {
  const OptimizationOptions plain{.optimizer = "sgd",
                                  .learning_rate = 0.5f,
                                  .schedule = ScheduleKind::kConstant,
                                  .weight_decay = 0};
  Build(plain);
  EXPECT_NEAR(DistanceOfAStep(), 0.5 * 5, 1e-6);
  OptimizationOptions clipped = plain;
  clipped.clip_norm = 2;
  Build(clipped);
  EXPECT_NEAR(DistanceOfAStep(), 0.5 * 2, 1e-6);
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
  expect({.total_steps = 4, .warmup_steps = 4},
         "warm-up over 4 of 4 steps: expected at least one step after it");
  expect({.average_window = 2}, "average_window = 2, expected one in [0, 1]");
  expect({.ema_decay = 1}, "ema_decay = 1, expected one in [0, 1)");
  expect({.optimizer = "sgd", .optimizer_options = {{"momentum", 0.5}}},
         "optimizer \"sgd\" has no option \"momentum\"");
}

TEST(Names, NameTheChoices) {
  EXPECT_EQ(ScheduleKindFromName("step"), ScheduleKind::kStep);
  EXPECT_EQ(InvalidArgumentText([] { ScheduleKindFromName("linear"); }),
            "schedule \"linear\": expected constant, cosine or step");
  EXPECT_EQ(AveragingKindFromName("ema"), AveragingKind::kEma);
  EXPECT_EQ(InvalidArgumentText([] { AveragingKindFromName("median"); }),
            "model_average \"median\": expected none, window or ema");
}

}  // namespace
}  // namespace skiff::training
