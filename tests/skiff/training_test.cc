// Programs built with the public API train, end to end, with every operator from the real registry.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>

#include "framework/analysis/verifier.h"
#include "skiff/skiff.h"

namespace skiff {
namespace {

struct Net {
  Program main;
  Program startup;
  Variable loss;
  Variable accuracy;
};

// conv - batch norm - pool - residual block - global pool - fc on [N, 3, 12, 12], 4 classes.
void BuildImageNet(Net* net, int64_t filters, float dropout = 0.0f) {
  ProgramGuard guard(&net->main, &net->startup);
  const Variable image = layers::Data("image", {-1, 3, 12, 12});
  const Variable label = layers::Data("label", {-1, 1}, DType::kInt64);
  const auto conv = [&](const Variable& x, const std::string& act) {
    const Variable y =
        layers::Conv2d(x, {.filters = filters, .kernel = 3, .padding = 1, .bias_attr = false});
    return layers::BatchNorm(y, {.act = act});
  };
  Variable x = conv(image, "relu");
  x = layers::Pool2d(x, {.kernel = 2, .type = "max", .stride = 2});
  x = layers::Relu(x + conv(conv(x, "relu"), ""));
  x = layers::Pool2d(x, {.type = "avg", .global = true});
  if (dropout > 0) x = layers::Dropout(x, dropout);
  const Variable logits = layers::Fc(x, 4, {.num_flatten_dims = 1});
  net->loss = layers::Mean(layers::SoftmaxWithCrossEntropy(logits, label));
  net->accuracy = layers::Accuracy(layers::Softmax(logits), label);
}

// Class k has a bright quadrant k; the rest is noise.
FeedList Batch(int64_t size, uint64_t seed) {
  Tensor image({size, 3, 12, 12}, DType::kFloat32);
  Tensor label({size, 1}, DType::kInt64);
  const Philox philox({seed, 0, 0});
  float* pixel = image.data<float>();
  for (int64_t n = 0; n < size; ++n) {
    const int64_t k = philox.At(static_cast<uint64_t>(n))[0] % 4;
    label.data<int64_t>()[n] = k;
    for (int64_t i = 0; i < 3 * 144; ++i, ++pixel) {
      const int64_t row = i % 144 / 12;
      const int64_t column = i % 12;
      const bool bright = row / 6 == k / 2 && column / 6 == k % 2;
      const auto position = static_cast<uint64_t>(1000 + n * 432 + i);
      *pixel = UnitFloat(philox.At(position)[1]) - 0.5f + (bright ? 0.7f : 0.0f);
    }
  }
  return {{"image", image}, {"label", label}};
}

std::vector<float> Losses(const Net& net, int steps, const CompileOptions& options = {},
                          std::string* hash = nullptr) {
  Executor executor(Place::Cpu());
  executor.Run(net.startup);
  CompiledProgram compiled = executor.Compile(net.main, options);
  std::vector<float> losses;
  for (int i = 0; i < steps; ++i) {
    losses.push_back(
        compiled.Run(Batch(16, static_cast<uint64_t>(i)), {net.loss})[0].Item<float>());
  }
  if (hash != nullptr) *hash = WeightsHash(executor.scope(), PersistableNames(net.main));
  return losses;
}

TEST(Training, LearnsToTellQuadrants) {
  Net net;
  BuildImageNet(&net, 16);
  std::unique_ptr<Program> evaluation;
  {
    evaluation = net.main.CloneForTest();
    ProgramGuard guard(&net.main, &net.startup);
    optimizer::Momentum({.learning_rate = 0.05, .momentum = 0.9f}).Minimize(net.loss);
  }
  CheckProgram(DefaultOpRegistry(), net.main);
  Executor executor(Place::Cpu());
  executor.Run(net.startup);
  CompiledProgram train = executor.Compile(net.main);
  for (uint64_t i = 0; i < 60; ++i) train.Run(Batch(16, i), {});
  CompiledProgram test = executor.Compile(*evaluation);
  EXPECT_GT(test.Run(Batch(200, 999), {net.accuracy})[0].Item<float>(), 0.9f);
}

class TrainingTest : public ::testing::TestWithParam<int64_t> {};

// Channels that fill a block of 8 and of 16, and that don't.
INSTANTIATE_TEST_SUITE_P(Channels, TrainingTest, ::testing::Values(3, 8, 16, 17));

TEST_P(TrainingTest, PassesDoNotChangeTheLosses) {
  Net net;
  BuildImageNet(&net, GetParam());
  {
    ProgramGuard guard(&net.main, &net.startup);
    optimizer::Adam({.learning_rate = 0.01, .clip = ClipByGlobalNorm(1.0f)}).Minimize(net.loss);
  }
  const std::vector<float> reference =
      Losses(net, 5, {.memory = {.policy = ReusePolicy::kNone}, .passes = {.skip = {"layout"}}});
  // Where memory is and when an update runs doesn't change a bit.
  EXPECT_EQ(Losses(net, 5, {.passes = {.skip = {"layout"}}}), reference);
  CompileOptions late;
  late.passes.skip = {"early_update", "dead_code", "layout"};
  EXPECT_EQ(Losses(net, 5, late), reference);
  // Blocked kernels sum in another order.
  EXPECT_THAT(Losses(net, 5), ::testing::Pointwise(::testing::FloatNear(2e-3f), reference));
}

TEST(Training, RepeatsBitByBitWithOneSeed) {
  Net net;
  BuildImageNet(&net, 8, 0.3f);
  net.main.seed = net.startup.seed = 7;
  {
    ProgramGuard guard(&net.main, &net.startup);
    optimizer::Sgd({.learning_rate = 0.1}).Minimize(net.loss);
  }
  std::string first;
  std::string second;
  EXPECT_EQ(Losses(net, 4, {}, &first), Losses(net, 4, {}, &second));
  EXPECT_EQ(first, second);
  net.main.seed = 8;
  Losses(net, 4, {}, &second);
  EXPECT_NE(first, second);
}

// Every run of the training program takes the next rate of the schedule, and the update takes just
// that one; a run of the evaluation program between them moves nothing.
TEST(Training, SchedulesAdvanceWithTheSteps) {
  constexpr int64_t kWarmup = 4;
  constexpr int64_t kEpochs = 5;  // of two steps each
  constexpr double kPeak = 0.2;
  Program main;
  Program startup;
  Variable loss;
  Variable rate;
  std::unique_ptr<Program> evaluation;
  {
    ProgramGuard guard(&main, &startup);
    const Variable x = layers::Data("x", {-1, 1});
    // The loss is the weight itself where x is 1, and its gradient is 1.
    loss = layers::Mean(layers::Fc(x, 1, {.param_attr = {.name = "weight"}, .bias_attr = false}));
    evaluation = main.CloneForTest();
    rate = learning_rate::LinearWarmup(
        learning_rate::Cosine({.start = kPeak, .steps_per_epoch = 2, .epochs = kEpochs}),
        {.warmup_steps = kWarmup, .start = 0.0f, .end = kPeak});
    optimizer::Sgd({.learning_rate = rate}).Minimize(loss);
  }
  Executor executor(Place::Cpu());
  executor.Run(startup);
  CompiledProgram train = executor.Compile(main);
  CompiledProgram test = executor.Compile(*evaluation);
  const FeedList feeds = {{"x", Tensor::FromValues<float>({1, 1}, {1.0f})}};
  const auto weight = [&] { return executor.scope().Get("weight").Item<float>(); };
  for (int64_t step = 0; step < 2 * kEpochs; ++step) {
    SCOPED_TRACE(step);
    const double expected =
        step < kWarmup ? kPeak * static_cast<double>(step) / kWarmup
                       : kPeak / 2 * (std::cos(M_PI * static_cast<double>(step / 2) / kEpochs) + 1);
    const float before = weight();
    EXPECT_NEAR(train.Run(feeds, {rate})[0].Item<float>(), expected, 1e-6);
    EXPECT_NEAR(before - weight(), expected, 1e-6);
    EXPECT_EQ(test.Run(feeds, {loss})[0].Item<float>(), weight());
    EXPECT_EQ(executor.scope().Get(kStepCounterName).Item<int64_t>(), step + 1);
  }
}

TEST(Training, RefusesALabelOutsideTheClasses) {
  Net net;
  BuildImageNet(&net, 3);
  Executor executor(Place::Cpu());
  executor.Run(net.startup);
  CompiledProgram compiled = executor.Compile(net.main);
  FeedList batch = Batch(4, 1);
  batch[1].second.data<int64_t>()[2] = 9;
  try {
    compiled.Run(batch, {net.loss});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("softmax_with_cross_entropy (block 0"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("training_test.cc:"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("9"));
  }
}

}  // namespace
}  // namespace skiff
