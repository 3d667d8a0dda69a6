#include "framework/builder/learning_rate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/step_counter.h"
#include "framework/executor/executor.h"
#include "framework/ir/op_role.h"
#include "framework/ir/program.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::HasSubstr;

class LearningRateTest : public testing::Test {
 protected:
  // The rate in the first `steps` runs.
  std::vector<float> Rates(const Variable& rate, int steps) {
    Executor exe(Place::Cpu());
    exe.Run(startup_);
    CompiledProgram program = exe.Compile(main_);
    std::vector<float> rates;
    for (int i = 0; i < steps; ++i) rates.push_back(program.Run({}, {rate})[0].Item<float>());
    return rates;
  }

  void ExpectRates(const Variable& rate, int steps, const std::function<double(int)>& expected) {
    const std::vector<float> rates = Rates(rate, steps);
    for (int i = 0; i < steps; ++i) {
      EXPECT_NEAR(rates[static_cast<size_t>(i)], expected(i), 1e-6 * (1 + expected(i)))
          << "step " << i;
    }
  }

  Program main_, startup_;
  ProgramGuard guard_{&main_, &startup_};
};

TEST_F(LearningRateTest, ConstantIsAPersistable) {
  const Variable rate = learning_rate::Constant(0.25);
  EXPECT_EQ(rate.name(), "learning_rate_0");
  EXPECT_TRUE(rate.var().persistable);
  EXPECT_TRUE(main_.root()->ops().empty());
  EXPECT_EQ(startup_.root()->ops().size(), 1u);
  EXPECT_THAT(InvalidArgumentText([] { learning_rate::Constant(-1.0); }),
              HasSubstr(": the learning rate is -1, expected a finite number from 0 on"));
}

TEST_F(LearningRateTest, NumbersAreFinite) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<std::function<Variable()>> schedules = {
      [] {
        return learning_rate::Piecewise({2}, {0.1f, kNaN});
      },
      [] { return learning_rate::Step({.start = kNaN}); },
      [] { return learning_rate::Exponential({.decay_rate = kInfinity}); },
      [] { return learning_rate::Polynomial({.end = -kInfinity}); },
      [] { return learning_rate::Cosine({.start = kInfinity}); },
      [] { return learning_rate::CosineRestarts({.end = kNaN}); },
      [] { return learning_rate::OneCycle({.peak = kInfinity, .total_steps = 10}); },
      [] { return learning_rate::LinearWarmup(0.1, {.start = kNaN}); },
      [] { return learning_rate::Noam({.factor = kNaN}); },
  };
  for (const auto& schedule : schedules) {
    EXPECT_THAT(InvalidArgumentText(schedule), HasSubstr("expected finite numbers of float32"));
  }
  EXPECT_THAT(InvalidArgumentText([] { learning_rate::Constant(kInfinity); }),
              HasSubstr(": the learning rate is inf, expected a finite number from 0 on"));
}

TEST_F(LearningRateTest, PiecewiseIsExactAtTheBoundaries) {
  const Variable rate = learning_rate::Piecewise({2, 5}, {0.1f, 0.03f, 0.001f});
  EXPECT_EQ(Rates(rate, 7), (std::vector<float>{0.1f, 0.1f, 0.03f, 0.03f, 0.03f, 0.001f, 0.001f}));
}

TEST_F(LearningRateTest, PiecewiseChecksItsLists) {
  EXPECT_THAT(InvalidArgumentText([] { learning_rate::Piecewise({2}, {0.1f}); }),
              HasSubstr(": 1 boundaries and 1 values, expected one value more"));
  EXPECT_THAT(InvalidArgumentText([] {
                learning_rate::Piecewise({2, 2}, {0.1f, 0.1f, 0.1f});
              }),
              HasSubstr(": boundary 2 follows 2, expected ascending ones"));
  EXPECT_THAT(InvalidArgumentText([] { learning_rate::Piecewise({}, {0.1f}); }),
              HasSubstr(": there is no boundary"));
}

TEST_F(LearningRateTest, StepDecaysAtWholeMultiples) {
  // 41 is a divisor whose rounded reciprocal misses 1.
  const Variable rate = learning_rate::Step({.start = 1.0f, .step_size = 41, .gamma = 0.5f});
  ExpectRates(rate, 130, [](int step) { return std::pow(0.5, step / 41); });
}

TEST_F(LearningRateTest, ExponentialDecays) {
  const Variable rate =
      learning_rate::Exponential({.start = 0.5f, .decay_steps = 4, .decay_rate = 0.3f});
  ExpectRates(rate, 10, [](int step) { return 0.5 * std::pow(0.3, step / 4.0); });
  EXPECT_THAT(InvalidArgumentText([] { learning_rate::Exponential({.decay_rate = 0.0f}); }),
              HasSubstr(": the decay rate is 0, expected a positive number"));
}

TEST_F(LearningRateTest, PolynomialEndsAtItsEnd) {
  const Variable rate =
      learning_rate::Polynomial({.start = 1.0f, .decay_steps = 4, .end = 0.2f, .power = 2.0f});
  ExpectRates(rate, 8,
              [](int step) { return 0.8 * std::pow(1.0 - std::min(step, 4) / 4.0, 2.0) + 0.2; });
}

TEST_F(LearningRateTest, PolynomialCycles) {
  const Variable rate = learning_rate::Polynomial(
      {.start = 1.0f, .decay_steps = 4, .end = 0.0f, .power = 1.0f, .cycle = true});
  ExpectRates(rate, 10, [](int step) {
    const double length = 4.0 * std::max(1.0, std::ceil(step / 4.0));
    return 1.0 - step / length;
  });
}

TEST_F(LearningRateTest, CosineFallsByEpoch) {
  const Variable rate = learning_rate::Cosine({.start = 0.1f, .steps_per_epoch = 3, .epochs = 4});
  ExpectRates(rate, 12, [](int step) {
    return 0.05 * (std::cos(std::numbers::pi * (step / 3) / 4.0) + 1.0);
  });
}

// The rate of CosineRestarts, from counting the cycles.
double RateWithRestarts(const learning_rate::CosineRestartsOptions& options, int64_t step) {
  int64_t begin = 0;
  int64_t length = options.first_steps;
  while (step >= begin + length) {
    begin += length;
    length *= options.factor;
  }
  const double share = static_cast<double>(step - begin) / static_cast<double>(length);
  return options.end +
         0.5 * (options.start - options.end) * (1.0 + std::cos(std::numbers::pi * share));
}

TEST_F(LearningRateTest, CosineRestartsInCyclesOfOneLength) {
  const learning_rate::CosineRestartsOptions options{.start = 0.1f, .end = 0.02f, .first_steps = 7};
  const Variable rate = learning_rate::CosineRestarts(options);
  ExpectRates(rate, 30, [&](int step) { return RateWithRestarts(options, step); });
}

TEST_F(LearningRateTest, CosineRestartsInCyclesThatGrow) {
  for (const int64_t factor : {2, 3}) {
    for (const int64_t first : {1, 5}) {
      Program main, startup;
      const ProgramGuard guard(&main, &startup);
      const learning_rate::CosineRestartsOptions options{
          .start = 1.0f, .first_steps = first, .factor = factor};
      const Variable rate = learning_rate::CosineRestarts(options);
      Executor exe(Place::Cpu());
      exe.Run(startup);
      CompiledProgram program = exe.Compile(main);
      for (int step = 0; step < 200; ++step) {
        EXPECT_NEAR(program.Run({}, {rate})[0].Item<float>(), RateWithRestarts(options, step), 2e-6)
            << "step " << step << " of cycles from " << first << " by " << factor;
      }
    }
  }
}

// Where the logarithm of the number of steps is no longer exact.
TEST_F(LearningRateTest, CosineRestartsExactlyAfterManySteps) {
  const learning_rate::CosineRestartsOptions options{
      .start = 1.0f, .end = 0.25f, .first_steps = 10, .factor = 2};
  const Variable rate = learning_rate::CosineRestarts(options);
  Executor exe(Place::Cpu());
  exe.Run(startup_);
  CompiledProgram program = exe.Compile(main_);
  for (int cycle = 20; cycle < 40; ++cycle) {
    const int64_t begin = 10 * ((int64_t{1} << cycle) - 1);
    // The counter advances before it is read.
    exe.scope().Assign(kStepCounter, Tensor::FromValues<int64_t>({1}, {begin - 2}));
    EXPECT_NEAR(program.Run({}, {rate})[0].Item<float>(), 0.25, 1e-6) << "before cycle " << cycle;
    EXPECT_EQ(program.Run({}, {rate})[0].Item<float>(), 1.0f) << "cycle " << cycle;
  }
}

TEST_F(LearningRateTest, OneCycleRisesOnceAndFalls) {
  const Variable rate = learning_rate::OneCycle({.peak = 0.8f,
                                                 .total_steps = 25,
                                                 .rising_share = 0.3f,
                                                 .start_divisor = 10.0f,
                                                 .end_divisor = 100.0f});
  const auto between = [](double start, double end, double share) {
    return end + 0.5 * (start - end) * (1.0 + std::cos(std::numbers::pi * share));
  };
  ExpectRates(rate, 28, [&](int step) {
    const double peak = 0.3 * 25 - 1;
    if (step <= peak) return between(0.08, 0.8, step / peak);
    return between(0.8, 0.0008, std::min(1.0, (step - peak) / (24 - peak)));
  });
  EXPECT_THAT(InvalidArgumentText([] { learning_rate::OneCycle({.total_steps = 3}); }),
              HasSubstr(": the peak is in step -0.1, rising_share · total_steps - 1, expected one "
                        "between 0 and the last, 2"));
}

TEST_F(LearningRateTest, WarmupHandsOverToTheNextRate) {
  const Variable after = learning_rate::Piecewise({6}, {0.5f, 0.25f});
  const Variable rate =
      learning_rate::LinearWarmup(after, {.warmup_steps = 4, .start = 0.1f, .end = 0.5f});
  ExpectRates(rate, 8, [](int step) {
    if (step < 4) return 0.1 + 0.4 * step / 4.0;
    return step < 6 ? 0.5 : 0.25;
  });
}

TEST_F(LearningRateTest, WarmupTakesANumber) {
  const Variable rate =
      learning_rate::LinearWarmup(0.5, {.warmup_steps = 2, .start = 0.0f, .end = 0.5f});
  EXPECT_EQ(Rates(rate, 4), (std::vector<float>{0.0f, 0.25f, 0.5f, 0.5f}));
}

TEST_F(LearningRateTest, NoamPeaksAtTheEndOfTheWarmup) {
  const Variable rate = learning_rate::Noam({.model_width = 64, .warmup_steps = 5});
  ExpectRates(rate, 12, [](int step) {
    const double n = step + 1;
    return std::pow(64.0, -0.5) * std::min(std::pow(n, -0.5), n * std::pow(5.0, -1.5));
  });
}

TEST_F(LearningRateTest, SchedulesShareOneCounter) {
  learning_rate::Piecewise({2}, {0.1f, 0.2f});
  learning_rate::Cosine({});
  int increments = 0;
  for (const auto& op : main_.root()->ops()) increments += op->type == "increment" ? 1 : 0;
  EXPECT_EQ(increments, 1);
  EXPECT_TRUE(main_.root()->GetVar(kStepCounter)->persistable);
  EXPECT_EQ(main_.root()->GetVar(kStepCounter)->dtype, DType::kInt64);
}

// Programs that train in turn have a startup program and a scope in common. Each counts its own
// runs and has a rate of its own.
TEST_F(LearningRateTest, ProgramsOfOneStartupProgramShareNeitherRateNorCounter) {
  const Variable constant = learning_rate::Constant(0.5);
  const Variable steps = learning_rate::Piecewise({2}, {1.0f, 2.0f});
  Program other;
  const ProgramGuard guard(&other, &startup_);
  const Variable other_constant = learning_rate::Constant(0.125);
  const Variable other_steps = learning_rate::Piecewise({1}, {3.0f, 4.0f});
  Executor exe(Place::Cpu());
  exe.Run(startup_);
  CompiledProgram first = exe.Compile(main_);
  CompiledProgram second = exe.Compile(other);
  std::vector<float> rates;
  std::vector<float> other_rates;
  for (int i = 0; i < 3; ++i) {
    rates.push_back(first.Run({}, {steps})[0].Item<float>());
    other_rates.push_back(second.Run({}, {other_steps})[0].Item<float>());
  }
  EXPECT_EQ(rates, (std::vector<float>{1.0f, 1.0f, 2.0f}));
  EXPECT_EQ(other_rates, (std::vector<float>{3.0f, 4.0f, 4.0f}));
  EXPECT_EQ(exe.scope().Get(constant.name()).Item<float>(), 0.5f);
  EXPECT_EQ(exe.scope().Get(other_constant.name()).Item<float>(), 0.125f);
}

TEST_F(LearningRateTest, ScheduleOpsHaveTheirRole) {
  learning_rate::Piecewise({2}, {0.1f, 0.2f});
  for (const auto& op : main_.root()->ops()) EXPECT_EQ(op->role(), kRoleLRSched) << op->type;
  EXPECT_TRUE(main_.CloneForTest()->root()->ops().empty());
}

}  // namespace
}  // namespace skiff
