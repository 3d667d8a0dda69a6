// Runs the code of docs/training.md as it is there. BUILD takes it out of the page.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "framework/builder/step_counter.h"
#include "skiff/skiff.h"
#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

// Numbers with mean 0 and deviation 1.
Tensor Normal(const Shape& shape, uint64_t seed) {
  Program main, startup;
  main.seed = seed;
  const ProgramGuard guard(&main, &startup);
  const Variable numbers = layers::GaussianRandom(shape.ToVector());
  return Executor(Place::Cpu()).Run(main, {}, {numbers})[0];
}

// All variables of a scope, by name, as bytes.
std::map<std::string, std::string> StateOf(const Scope& scope) {
  std::map<std::string, std::string> state;
  for (const std::string& name : scope.Names()) {
    const Tensor tensor = CopyToCpu(scope.Get(name));
    state[name] = std::string(static_cast<const char*>(tensor.raw_data()),
                              static_cast<size_t>(tensor.byte_count()));
  }
  return state;
}

// ---- one linear layer w on x [8, 4]

class TrainingPage : public testing::Test {
 protected:
  TrainingPage() {
    x = layers::Data("x", {-1, 4});
    w = layers::CreateParameter({4, 1}, DType::kFloat32, {.name = "w"});
    y = layers::MatMul(x, w);
    loss = layers::Mean(layers::Square(y - 1.0));
  }

  float Step() {
    if (!is_started_) executor.Run(startup);
    is_started_ = true;
    return executor.Run(main, {{"x", Normal({8, 4}, 1)}}, {loss})[0].Item<float>();
  }

  Program main, startup;
  ProgramGuard guard_{&main, &startup};
  Variable x, w, y, loss;
  Executor executor{Place::Cpu()};

 private:
  bool is_started_ = false;
};

TEST_F(TrainingPage, ShowsASchedule) {
#include "tests/framework/training/schedule.inc"
  const float first = Step();
  for (int i = 0; i < 20; ++i) Step();
  EXPECT_LT(Step(), first);
}

TEST_F(TrainingPage, ShowsAPlateau) {
#include "tests/framework/training/plateau.inc"
  Step();
  for (int i = 0; i < 5; ++i) after_an_epoch(1);
  EXPECT_EQ(training::LearningRateIn(executor.scope(), rate), 0.5f * 0.1f);
}

TEST_F(TrainingPage, ShowsGradients) {
#include "tests/framework/training/gradients.inc"
  EXPECT_EQ(gradients[1].dims(), x.dims());
  const float first = Step();
  for (int i = 0; i < 20; ++i) Step();
  EXPECT_LT(Step(), first);
}

// ---- a classifier of 3 classes

class ClassifierPage : public testing::Test {
 protected:
  ClassifierPage() {
    program.main = std::make_unique<Program>();
    program.startup = std::make_unique<Program>();
    program.main->seed = program.startup->seed = 3;
    const ProgramGuard guard(program.main.get(), program.startup.get());
    const Variable image = layers::Data("x", {-1, 4});
    const Variable of = layers::Data("label", {-1, 1}, DType::kInt64);
    const Variable logits = layers::Fc(image, 3);
    const Variable probabilities = layers::Softmax(logits);
    loss = layers::Mean(layers::SoftmaxWithCrossEntropy(logits, of));
    scores = probabilities.name();
    score_of_0 = layers::Slice(probabilities, {.axes = {1}, .starts = {0}, .ends = {1}}).name();
    is_0 = layers::Cast(layers::Equal(of, layers::ZerosLike(of)), DType::kInt64).name();
    program.loss = loss;
    program.metrics = {{.name = "accuracy",
                        .variable = layers::Accuracy(probabilities, of),
                        .larger_is_better = true}};
    program.model_inputs = {"x"};
    program.model_outputs = {scores};
    program.test = program.main->CloneForTest();
    const Variable rate = learning_rate::Constant(0.5);
    program.learning_rate = rate;
    optimizer::Sgd({.learning_rate = rate}).Minimize(loss);
    x = Normal({96, 4}, 5);
    std::vector<int64_t> labels;
    for (int64_t i = 0; i < 96; ++i) {
      const float* row = x.data<float>() + 4 * i;
      labels.push_back(std::max_element(row, row + 3) - row);
    }
    label = Tensor::FromValues<int64_t>({96, 1}, labels);
  }

  training::TrainingProgram program;
  Variable loss;
  std::string scores, score_of_0, is_0;
  Tensor x, label;
  TempDirectory folder;
  std::ostringstream out;
};

TEST_F(ClassifierPage, ShowsAnArrayReader) {
  Executor executor(Place::Cpu());
  executor.Run(*program.startup);
  CompiledProgram step = executor.Compile(*program.main);
#include "tests/framework/training/arrays.inc"
  EXPECT_EQ(executor.scope().Get(kStepCounterName).Item<int64_t>(), 6);
}

TEST_F(ClassifierPage, ShowsCallbacksAndMetrics) {
  const std::string directory = folder / "run";
#include "tests/framework/training/callbacks.inc"
#include "tests/framework/training/metrics.inc"
  training::ArrayReader train({{"x", x}, {"label", label}}, {.batch_size = 32, .shuffle = true});
  training::ArrayReader validation({{"x", x}, {"label", label}});
  training::Trainer trainer(&program, &train, &validation, options, &out);
  const training::TrainingResult result = trainer.Run();
  EXPECT_GT(result.best_value, 0.6);
  EXPECT_THAT(out.str(), HasSubstr("F1 "));
}

TEST_F(ClassifierPage, ShowsAnEvaluation) {
  Executor executor(Place::Cpu());
  executor.Run(*program.startup);
  CompiledProgram test = executor.Compile(*program.test);
  training::ArrayReader validation({{"x", x}, {"label", label}});
  training::Batch batch;
#include "tests/framework/training/evaluation.inc"
  EXPECT_GT(auc.Value(), 0);
  EXPECT_LT(auc.Value(), 1);
}

// ---- a generator and its discriminator

// The names of what differs.
std::vector<std::string> Changed(const std::map<std::string, std::string>& before,
                                 const std::map<std::string, std::string>& after) {
  std::vector<std::string> changed;
  for (const auto& [name, value] : after) {
    const auto found = before.find(name);
    if (found == before.end() || found->second != value) changed.push_back(name);
  }
  return changed;
}

// Numbers with mean 3 and deviation 0.5.
FeedList Numbers() {
  Tensor numbers = Normal({6400, 1}, 5);
  for (float& number : numbers.values<float>()) number = 3 + 0.5f * number;
  return {{"real", numbers}};
}

constexpr training::SampleReaderOptions kShuffled = {
    .batch_size = 64, .shuffle = true, .drop_last = false, .seed = 2};

TEST(TwoPrograms, LearnInTurn) {
#include "tests/framework/training/gan.inc"
  training::ArrayReader reader(Numbers(), kShuffled);
  training::Batch batch;
  EXPECT_EQ(executor.scope().Get("g.b").Item<float>(), 0);
  for (int64_t epoch = 0; epoch < 6; ++epoch) {
    reader.StartEpoch(epoch);
    while (reader.Next(&batch)) {
      d_step.Run(batch.feeds, {});
      g_step.Run(batch.feeds, {});
    }
  }
  EXPECT_NEAR(executor.scope().Get("g.b").Item<float>(), 3, 0.4) << "the mean";
  EXPECT_NEAR(std::abs(executor.scope().Get("g.w").Item<float>()), 0.5, 0.4) << "the deviation";
}

// Each changes the parameters of its list, the states of its optimizer, and its own counter of
// steps, and nothing else but the counter of all runs.
TEST(TwoPrograms, TrainTheirOwnParameters) {
#include "tests/framework/training/gan.inc"
  const FeedList feeds = {{"real", Normal({64, 1}, 5)}};
  const auto before = StateOf(executor.scope());
  d_step.Run(feeds, {});
  const auto between = StateOf(executor.scope());
  g_step.Run(feeds, {});
  const auto after = StateOf(executor.scope());
  for (const std::string& name : Changed(before, between)) {
    EXPECT_TRUE(name.starts_with("d.") || name == kStepCounterName) << name;
  }
  for (const std::string& name : Changed(between, after)) {
    EXPECT_TRUE(name.starts_with("g.") || name == kStepCounterName || name == kStepCounter) << name;
  }
  EXPECT_THAT(Changed(before, between), IsSupersetOf({"d.w0", "d.b0", "d.w1", "d.b1"}));
  EXPECT_THAT(Changed(between, after), IsSupersetOf({"g.w", "g.b", kStepCounter}));
}

TEST(TwoPrograms, ResumeToTheSameBits) {
  const TempDirectory folder;
  const std::string directory = folder / "checkpoints";
  // Trains, saves after the 64th step, and goes on.
  const auto whole = [&] {
#include "tests/framework/training/gan.inc"
    training::ArrayReader reader(Numbers(), kShuffled);
    training::Batch batch;
    int64_t step = 0;
#include "tests/framework/training/gan_save.inc"
    EXPECT_EQ(step, 64);
    train(30);
    return StateOf(executor.scope());
  }();
  const auto resumed = [&] {
#include "tests/framework/training/gan.inc"
    training::ArrayReader reader(Numbers(), kShuffled);
    training::Batch batch;
    int64_t step = 0;
#include "tests/framework/training/gan_load.inc"
    EXPECT_EQ(step, 64);
    while (step < 94 && reader.Next(&batch)) {
      d_step.Run(batch.feeds, {});
      g_step.Run(batch.feeds, {});
      ++step;
    }
    return StateOf(executor.scope());
  }();
  EXPECT_EQ(resumed, whole);
}

}  // namespace
}  // namespace skiff
