#include "framework/training/callback.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/builder/activation.h"
#include "framework/builder/data.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/momentum.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/variable_operators.h"
#include "framework/io/file.h"
#include "framework/training/array_reader.h"
#include "framework/training/reduce_on_plateau.h"
#include "framework/training/trainer.h"
#include "tests/harness/temp_directory.h"

namespace skiff::training {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Rows x and their sums y.
FeedList Sums(int64_t rows) {
  std::vector<float> x;
  std::vector<float> y;
  for (int64_t i = 0; i < rows; ++i) {
    y.push_back(0);
    for (int64_t k = 0; k < 3; ++k) {
      x.push_back(std::sin(static_cast<float>(3 * i + k)));
      y.back() += x.back();
    }
  }
  return {{"x", Tensor::FromValues<float>({rows, 3}, x)},
          {"y", Tensor::FromValues<float>({rows, 1}, y)}};
}

// A line through 20 rows, in 5 batches an epoch.
class CallbackTest : public ::testing::Test {
 protected:
  CallbackTest() {
    program_.main = std::make_unique<Program>();
    program_.startup = std::make_unique<Program>();
    program_.main->seed = program_.startup->seed = 3;
    const ProgramGuard guard(program_.main.get(), program_.startup.get());
    const Variable x = layers::Data("x", {-1, 3});
    const Variable y = layers::Data("y", {-1, 1});
    const Variable sum = layers::Fc(x, 1, {.param_attr = {.name = "w"}});
    const Variable error = layers::ReduceMax(layers::Abs(sum - y));
    const Variable loss = layers::Mean(layers::Square(sum - y));
    program_.loss = loss;
    program_.metrics = {{.name = "error", .variable = error}};
    program_.model_inputs = {x};
    program_.model_outputs = {sum};
    program_.test = program_.main->CloneForTest();
    const Variable rate = learning_rate::Constant(0.1);
    program_.learning_rate = rate;
    optimizer::Momentum({.learning_rate = rate, .momentum = 0.5f}).Minimize(loss);
  }

  TrainerOptions Options(const std::string& name, std::shared_ptr<Callback> callback) {
    return {.output_dir = directory_ / name, .epochs = 3, .callbacks = {std::move(callback)}};
  }
  Trainer Make(const TrainerOptions& options) {
    return Trainer(&program_, &train_, &validation_, options, &out_);
  }

  TempDirectory directory_;
  ArrayReader train_{Sums(20), {.batch_size = 4, .shuffle = true, .seed = 7}};
  ArrayReader validation_{Sums(6), {.batch_size = 4}};
  TrainingProgram program_;
  std::ostringstream out_;
};

// Does what a test says, where it says.
class Calls : public Callback {
 public:
  using Act = std::function<void(TrainingControl*)>;

  void OnStep(const StepReport& report, TrainingControl* control) override {
    steps.push_back(report);
    if (at_step && report.step == step) at_step(control);
  }
  void OnEvaluation(const EvaluationReport& report, TrainingControl* control) override {
    evaluations.push_back(report);
    if (at_evaluation) at_evaluation(control);
  }
  void OnEpoch(const TrainingRecord& record, TrainingControl* control) override {
    epochs.push_back(record);
    if (at_epoch) at_epoch(control);
  }

  std::vector<StepReport> steps;
  std::vector<EvaluationReport> evaluations;
  std::vector<TrainingRecord> epochs;
  int64_t step = 0;
  Act at_step, at_evaluation, at_epoch;
};

TEST_F(CallbackTest, HearsOfEachStepEvaluationAndEpoch) {
  const auto calls = std::make_shared<Calls>();
  const TrainingResult result = Make(Options("run", calls)).Run();
  ASSERT_TRUE(result.finished);
  ASSERT_EQ(calls->steps.size(), 15u);
  double loss = 0;
  for (size_t i = 0; i < 15; ++i) {
    const StepReport& report = calls->steps[i];
    EXPECT_EQ(report.epoch, static_cast<int64_t>(i / 5 + 1));
    EXPECT_EQ(report.batch, static_cast<int64_t>(i % 5 + 1));
    EXPECT_EQ(report.step, static_cast<int64_t>(i + 1));
    EXPECT_EQ(report.samples, 4);
    EXPECT_EQ(report.learning_rate, static_cast<double>(0.1f));
    if (i >= 10) loss += report.metrics.at("loss") / 5;
  }
  EXPECT_NEAR(loss, result.records[2].train.at("loss"), 1e-12);
  EXPECT_GE(calls->steps[14].metrics.at("error"), std::sqrt(calls->steps[14].metrics.at("loss")));
  ASSERT_EQ(calls->evaluations.size(), 3u);
  EXPECT_EQ(calls->evaluations[1].epoch, 2);
  EXPECT_EQ(calls->evaluations[1].step, 10);
  EXPECT_FALSE(calls->evaluations[1].is_averaged);
  EXPECT_EQ(calls->evaluations[1].metrics, result.records[1].validation);
  EXPECT_EQ(calls->epochs, result.records);
}

// What a callback assigns is used by the next step, and is in the checkpoint.
TEST_F(CallbackTest, ChangesTheScope) {
  const auto calls = std::make_shared<Calls>();
  const Tensor zeros = Tensor::FromValues<float>({3, 1}, {0, 0, 0});
  calls->step = 8;
  calls->at_step = [&](TrainingControl* control) {
    control->scope().Assign("w", zeros);
    control->SetLearningRate(0);
  };
  TrainerOptions options = Options("run", calls);
  options.stop_after_steps = 8;
  Make(options).Run();
  options.stop_after_steps = 0;
  options.callbacks = {std::make_shared<Calls>()};
  Trainer resumed = Make(options);
  resumed.Resume();
  resumed.Run();
  const auto& later = *static_cast<Calls*>(options.callbacks[0].get());
  ASSERT_EQ(later.steps.size(), 7u);
  EXPECT_EQ(later.steps[0].learning_rate, 0);
  // The bias still has what the first steps taught it; no step changes it at rate 0.
  EXPECT_EQ(later.evaluations[0].metrics, later.evaluations[1].metrics);
}

TEST_F(CallbackTest, StopsBetweenStepsAndIsResumedToTheSameBits) {
  const std::string whole = Make(Options("whole", std::make_shared<Calls>())).Run().weights_hash;
  const auto calls = std::make_shared<Calls>();
  calls->step = 7;
  calls->at_step = [](TrainingControl* control) { control->Stop(); };
  const TrainerOptions options = Options("broken", calls);
  Trainer trainer = Make(options);
  const TrainingResult stopped = trainer.Run();
  EXPECT_FALSE(stopped.finished);
  EXPECT_EQ(stopped.signal, 0);
  EXPECT_EQ(calls->steps.size(), 7u);
  Trainer resumed = Make(options);
  resumed.Resume();
  const TrainingResult result = resumed.Run();
  EXPECT_TRUE(result.finished);
  EXPECT_EQ(calls->steps.size(), 15u);
  EXPECT_EQ(result.weights_hash, whole);
}

TEST_F(CallbackTest, StopsAfterAnEpoch) {
  const auto calls = std::make_shared<Calls>();
  calls->at_epoch = [](TrainingControl* control) { control->Stop(); };
  EXPECT_FALSE(Make(Options("run", calls)).Run().finished);
  EXPECT_EQ(calls->steps.size(), 5u);
  EXPECT_EQ(calls->epochs.size(), 1u);
}

// Whatever is thrown, and wherever: what was saved before is as it was, and goes on to the same
// bits.
TEST_F(CallbackTest, LeavesCheckpointsIntactWhenItThrows) {
  const std::string whole = Make(Options("whole", std::make_shared<Calls>())).Run().weights_hash;
  const Calls::Act fail = [](TrainingControl*) { throw std::runtime_error("in the callback"); };
  const std::vector<std::function<void(Calls*)>> places = {
      [&](Calls* calls) {
        calls->step = 7;
        calls->at_step = fail;
      },
      [&](Calls* calls) { calls->at_evaluation = fail; },
      [&](Calls* calls) { calls->at_epoch = fail; }};
  for (size_t i = 0; i < places.size(); ++i) {
    SCOPED_TRACE(i);
    const auto calls = std::make_shared<Calls>();
    TrainerOptions options = Options("broken" + std::to_string(i), calls);
    options.save_every_steps = 3;
    {
      Trainer trainer = Make(options);
      places[i](calls.get());
      EXPECT_THROW(trainer.Run(), std::runtime_error);
    }
    const std::vector<std::string> saved = NamesIn(options.output_dir + "/checkpoints");
    ASSERT_FALSE(saved.empty());
    EXPECT_THAT(saved.back(), HasSubstr(i == 0 ? "-step-6" : "-step-3"));
    options.callbacks = {};
    Trainer resumed = Make(options);
    resumed.Resume();
    const TrainingResult result = resumed.Run();
    EXPECT_EQ(result.weights_hash, whole);
    EXPECT_EQ(result.records.size(), 3u);
  }
}

// Counts the steps of the whole training, breaks included.
class Counter : public Callback {
 public:
  void OnStep(const StepReport&, TrainingControl*) override { ++count; }
  std::map<std::string, std::string> State() const override {
    return {{"count", std::to_string(count)}};
  }
  void Restore(const std::map<std::string, std::string>& state) override {
    if (state.at("count") == "7") Throw(ErrorCode::kDataLoss, "seven");
    count = std::stoll(state.at("count"));
  }

  int64_t count = 0;
};

TEST_F(CallbackTest, HasItsStateInTheCheckpoint) {
  TrainerOptions options = Options("run", std::make_shared<Calls>());
  const auto stop_at = [&](int64_t step) {
    options.callbacks = {std::make_shared<Calls>(), std::make_shared<Counter>()};
    options.stop_after_steps = step;
    Trainer trainer = Make(options);
    if (step != 4) trainer.Resume();
    trainer.Run();
    return static_cast<Counter*>(options.callbacks[1].get())->count;
  };
  EXPECT_EQ(stop_at(4), 4);
  EXPECT_EQ(stop_at(7), 7);
  // A refused state is an Error that says whose, and changes nothing.
  Trainer trainer = Make(options);
  static_cast<Counter*>(options.callbacks[1].get())->count = 2;
  EXPECT_THAT(ErrorOf([&] { trainer.Resume(); }).what(), HasSubstr("callback 1: seven"));
  EXPECT_EQ(static_cast<Counter*>(options.callbacks[1].get())->count, 2);
}

TEST_F(CallbackTest, DoesNotTakeTheStateOfAnother) {
  class AnotherCounter : public Counter {};
  TrainerOptions options = Options("run", std::make_shared<Counter>());
  options.stop_after_steps = 2;
  Make(options).Run();
  options.callbacks = {std::make_shared<AnotherCounter>()};
  Trainer trainer = Make(options);
  EXPECT_THAT(ErrorOf([&] { trainer.Resume(); }).what(),
              AllOf(HasSubstr("the state of callback 0, \""),
                    HasSubstr("Counter\", but callback 0 is"), HasSubstr("AnotherCounter")));
}

TEST_F(CallbackTest, RefusesNullptr) {
  EXPECT_THAT(ErrorOf([&] { Make(Options("run", nullptr)); }).what(),
              HasSubstr("a callback is nullptr"));
}

TEST_F(CallbackTest, ReducesTheRateOnAPlateau) {
  const auto rates = [&](const std::string& name, int64_t stop) {
    TrainerOptions options = Options(name, std::make_shared<ReduceOnPlateau>(PlateauOptions{
                                               .factor = 0.5, .patience = 1, .threshold = 1e6}));
    options.epochs = 8;
    options.stop_after_steps = stop;
    Trainer trainer = Make(options);
    TrainingResult result = trainer.Run();
    if (stop > 0) {
      options.callbacks = {std::make_shared<ReduceOnPlateau>(
          PlateauOptions{.factor = 0.5, .patience = 1, .threshold = 1e6})};
      options.stop_after_steps = 0;
      Trainer resumed = Make(options);
      resumed.Resume();
      result = resumed.Run();
    }
    std::vector<double> found;
    for (const TrainingRecord& record : result.records) found.push_back(record.learning_rate);
    return found;
  };
  // After the first value none is better by so much: each second one reduces the rate.
  const std::vector<double> whole = rates("whole", 0);
  const double rate = 0.1f;
  EXPECT_THAT(whole,
              ElementsAre(rate, rate, rate, rate / 2, rate / 2, rate / 4, rate / 4, rate / 8));
  EXPECT_EQ(rates("broken", 13), whole);
}

TEST(SetLearningRate, KeepsTheDTypeAndRefusesWhatIsNoRate) {
  Scope scope;
  scope.Set("rate", Tensor::FromValues<double>({1}, {0.5}));
  scope.Set("two", Tensor::FromValues<float>({2}, {1, 2}));
  const uint64_t generation = scope.generation();
  SetLearningRate("rate", 0.1, &scope);
  EXPECT_EQ(LearningRateIn(scope, "rate"), 0.1);
  EXPECT_EQ(scope.generation(), generation) << "plans would be made again";
  ExpectError([&] { SetLearningRate("rate", -1, &scope); }, ErrorCode::kInvalidArgument,
              "the learning rate \"rate\" is to be -1, expected a finite number of at least 0");
  ExpectError([&] { SetLearningRate("two", 1, &scope); }, ErrorCode::kInvalidArgument,
              "the learning rate \"two\" is float32 [2], expected one float32 or float64 number");
  ExpectError([&] { SetLearningRate("none", 1, &scope); }, ErrorCode::kNotFound,
              "the learning rate \"none\" is not in the scope: expected one that "
              "learning_rate::Constant has made");
}

}  // namespace
}  // namespace skiff::training
