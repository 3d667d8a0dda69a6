#include "framework/builder/scaled_loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "framework/builder/data.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/adam.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "framework/executor/executor.h"
#include "framework/op/registry.h"
#include "framework/transpiler/pass.h"
#include "tests/framework/builder/warnings.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kBatch = 4;
constexpr int64_t kWidth = 8;

// A training of one layer in float16, whose gradient is the mean of the rows of x.
class ScaledTraining {
 public:
  struct Options {
    std::optional<LossScaling> scaling = {};
    DType dtype = DType::kFloat16;
    GradientClip clip = {};
    int64_t merged_steps = 1;
    float loss_factor = 1.0f;
    std::vector<std::string> passes = {};
  };

  explicit ScaledTraining(const Options& options) {
    const ProgramGuard guard(&main_, &startup_);
    startup_.seed = 3;
    const Variable x = layers::Data("x", {kBatch, kWidth});
    const Variable mean =
        layers::Mean(layers::Fc(x, 1, {.param_attr = {.name = "w"}, .bias_attr = false}));
    const Variable loss = layers::Scale(mean, {.scale = options.loss_factor});
    loss_ = loss.name();
    optimizer::Adam({.learning_rate = 0.01, .clip = options.clip})
        .Minimize(loss, {.gradient_merge = {.steps = options.merged_steps},
                         .precision = {.dtype = options.dtype, .loss_scaling = options.scaling}});
    executor_.Run(startup_, {}, {});
    compiled_ = std::make_unique<CompiledProgram>(
        executor_.Compile(main_, {.passes = {.also = options.passes}}));
  }

  // Runs a step in which all elements of x are `value`; returns the loss.
  float Step(float value) {
    const Tensor x = Tensor::FromValues<float>(
        {kBatch, kWidth}, std::vector<float>(static_cast<size_t>(kBatch * kWidth), value));
    return compiled_->Run({{"x", x}}, {loss_})[0].Item<float>();
  }

  std::vector<float> Weights() const {
    return executor_.scope().Get("w_fp32_master_0").ToVector<float>();
  }
  float Scale() const { return executor_.scope().Get(kLossScale).Item<float>(); }
  int64_t Skipped() const { return executor_.scope().Get(kSkippedUpdates).Item<int64_t>(); }

 private:
  Program main_, startup_;
  mutable Executor executor_{Place::Cpu()};
  std::string loss_;
  std::unique_ptr<CompiledProgram> compiled_;
};

LossScaling Fixed(float scale) { return {.initial = scale, .is_dynamic = false}; }

// Where nothing overflows or vanishes, a power of two changes no bit.
TEST(ScaledLoss, TrainsAsWithoutScaleBitForBit) {
  const auto weights = [](float scale, const GradientClip& clip,
                          const std::vector<std::string>& passes) {
    ScaledTraining training({.scaling = Fixed(scale), .clip = clip, .passes = passes});
    for (const float x : {1.0f, -0.5f, 0.3f}) training.Step(x);
    return training.Weights();
  };
  for (const GradientClip& clip :
       {GradientClip(), ClipByGlobalNorm(0.1f), ClipByNorm(0.1f), ClipByValue(0.1f)}) {
    const std::vector<float> unscaled = weights(1.0f, clip, {});
    EXPECT_EQ(weights(1024.0f, clip, {}), unscaled);
    EXPECT_EQ(weights(1024.0f, clip, {"fuse_optimizer"}), unscaled);
  }
}

TEST(ScaledLoss, KeepsGradientsThatWouldVanish) {
  const auto moves = [](float scale) {
    // The gradient is 1e-6 · 2^-10, of which float16 holds nothing.
    ScaledTraining training({.scaling = Fixed(scale), .loss_factor = 1e-6f});
    const std::vector<float> before = training.Weights();
    training.Step(0x1p-10f);
    return training.Weights() != before;
  };
  EXPECT_FALSE(moves(1.0f));
  EXPECT_TRUE(moves(65536.0f));
}

TEST(ScaledLoss, SkipsAStepThatOverflowsAndHalvesTheScale) {
  ScaledTraining training({});
  training.Step(0.25f);
  const std::vector<float> before = training.Weights();
  // x is finite, and so is the gradient, but not 65,536 times it.
  training.Step(1000.0f);
  EXPECT_EQ(training.Weights(), before);
  EXPECT_EQ(training.Scale(), 32768.0f);
  EXPECT_EQ(training.Skipped(), 1);
  training.Step(0.25f);
  EXPECT_NE(training.Weights(), before);
  EXPECT_EQ(training.Scale(), 32768.0f);
}

TEST(ScaledLoss, GrowsAfterFiniteStepsInARow) {
  ScaledTraining training({.scaling = LossScaling{.initial = 4.0f, .growth_interval = 2}});
  std::vector<float> scales;
  const float inf = std::numeric_limits<float>::infinity();
  for (const float x : {1.0f, 1.0f, 1.0f, inf, 1.0f, 1.0f}) {
    training.Step(x);
    scales.push_back(training.Scale());
  }
  EXPECT_THAT(scales, ElementsAre(4.0f, 8.0f, 8.0f, 4.0f, 4.0f, 8.0f));
}

TEST(ScaledLoss, NeverFallsBelowOne) {
  ScaledTraining training({.scaling = LossScaling{.initial = 2.0f}});
  for (int i = 0; i < 4; ++i) training.Step(std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(training.Scale(), 1.0f);
  EXPECT_EQ(training.Skipped(), 4);
}

TEST(ScaledLoss, ChangesOnlyBetweenRoundsOfGradients) {
  ScaledTraining training({.merged_steps = 2});
  const std::vector<float> before = training.Weights();
  training.Step(1000.0f);
  EXPECT_EQ(training.Scale(), 65536.0f);
  training.Step(0.25f);
  EXPECT_EQ(training.Scale(), 32768.0f);
  EXPECT_EQ(training.Weights(), before);
  EXPECT_EQ(training.Skipped(), 1);
}

TEST(ScaledLoss, RefusesFactorsThatAreNone) {
  const auto error = [](const LossScaling& scaling) {
    return InvalidArgumentText([&] { ScaledTraining training({.scaling = scaling}); });
  };
  EXPECT_THAT(error({.initial = 0.0f}),
              HasSubstr("loss_scaling.initial = 0, expected a positive number"));
  EXPECT_THAT(error({.growth = 0.5f}),
              HasSubstr("loss_scaling.growth = 0.5, expected a number of at least 1"));
  EXPECT_THAT(error({.backoff = 2.0f}),
              HasSubstr("loss_scaling.backoff = 2, expected a number in (0, 1]"));
  EXPECT_THAT(error({.growth_interval = 0}),
              HasSubstr("loss_scaling.growth_interval = 0, expected at least 1 update"));
}

TEST(ScaledLoss, WarnsOfFactorsThatAreNoPowersOfTwo) {
  const Warnings warnings;
  const ScaledTraining training({.scaling = LossScaling{.backoff = 0.8f}});
  EXPECT_THAT(warnings.texts, ElementsAre(HasSubstr("loss_scaling.backoff = 0.8")));
}

// Two programs of one startup program, each with a layer of its own.
TEST(TwoScaledTrainings, HaveScalesOfTheirOwn) {
  Program startup;
  Program mains[2];
  std::string losses[2];
  for (size_t i = 0; i < 2; ++i) {
    const ProgramGuard guard(&mains[i], &startup);
    const Variable x = layers::Data("x", {kBatch, kWidth});
    const Variable loss = layers::Mean(
        layers::Fc(x, 1, {.param_attr = {.name = i == 0 ? "w" : "v"}, .bias_attr = false}));
    losses[i] = loss.name();
    optimizer::Sgd({.learning_rate = 0.01})
        .Minimize(loss, {.precision = {.dtype = DType::kFloat16}});
  }
  Executor executor(Place::Cpu());
  executor.Run(startup);
  const auto step = [&](const Program& main, float value) {
    executor.Run(main, {{"x", Tensor::FromValues<float>(
                                  {kBatch, kWidth}, std::vector<float>(kBatch * kWidth, value))}});
  };
  const auto scale = [&](const std::string& name) {
    return executor.scope().Get(name).Item<float>();
  };
  step(mains[0], 0.25f);
  step(mains[1], std::numeric_limits<float>::infinity());
  EXPECT_EQ(scale("loss_scaling_0"), 65536.0f);
  EXPECT_EQ(scale("loss_scaling_0_0"), 32768.0f);
  EXPECT_EQ(executor.scope().Get("num_good_steps_0").Item<int32_t>(), 1);
  EXPECT_EQ(executor.scope().Get("num_good_steps_0_0").Item<int32_t>(), 0);
  EXPECT_EQ(executor.scope().Get("@SKIPPED_UPDATES@").Item<int64_t>(), 0);
  EXPECT_EQ(executor.scope().Get("@SKIPPED_UPDATES@_0").Item<int64_t>(), 1);
}

}  // namespace
}  // namespace skiff
